"""Publishing at QoS 2 on the wire.  MQTT 3.1 §3.5 to §3.7, §4.1, §4.3."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import pingreq, puback, pubcomp, publish, pubrec, pubrel
from host_tests.standin.store import KeepingStore
from umqtt31 import NETWORK

# Time-outs without being asked, DUP on PUBREL and its place are those of MQTT 3.1.
LEVEL_3 = (
    "test_c2b_qos2_pubrec_lost_resends_publish_with_dup",
    "test_c2b_qos2_pubcomp_lost_resends_pubrel_never_publish",
    "test_c2b_qos2_pubrels_leave_in_the_order_of_the_publishes",
    "test_c2b_qos2_after_a_reset_goes_on_with_pubrel",
)


# 311-2.3.1-6, 311-4.3.3-1, MQTT-2.2.1-5, MQTT-3.6.1-1.
def test_c2b_qos2_whole_flow():
    """31-3.5-PUBREC, 31-3.6-PUBREL, 31-3.7-PUBCOMP, MQTT-4.3.3-2, MQTT-4.3.3-4,
    MQTT-4.3.3-5, 31-2.1-DUP.

    C: PUBLISH QoS 2 id 1, DUP 0
    B: PUBREC 1
    C: PUBREL 1
    B: PUBCOMP 1
       (an hour)
    C: nothing
    """
    d = Dialogue(keepalive=0)
    assert d.publish(b"hello", 2) == 1
    d.c2b(publish(b"t", b"hello", 2, 1))
    d.b2c(b"\x50\x02\x00\x01")
    d.c2b(b"\x62\x02\x00\x01")
    assert d.client.inflight == 1
    d.b2c(b"\x70\x02\x00\x01")
    assert d.client.inflight == 0
    d.wait(3600)
    d.connect(False)
    d.c2b()


def test_c2b_qos2_pubrec_lost_resends_publish_with_dup():
    """31-4.1-Q2, MQTT-4.3.3-3, 31-2.1-DUP.

    C: PUBLISH 1
    B: nothing
       (30 s)
    C: PUBLISH 1 DUP
    B: PUBREC 1, C: PUBREL 1, B: PUBCOMP 1
    """
    d = Dialogue(keepalive=0)
    d.publish(b"a", 2)
    d.c2b(publish(b"t", b"a", 2, 1))
    d.wait(0)
    d.wait(30)
    d.c2b(publish(b"t", b"a", 2, 1, dup=1))
    d.b2c(pubrec(1))
    d.c2b(pubrel(1))
    d.b2c(pubcomp(1))
    assert d.client.inflight == 0


def test_c2b_qos2_pubcomp_lost_resends_pubrel_never_publish():
    """31-4.1-Q2, MQTT-4.3.3-5, MQTT-4.3.3-6, 31-2.1-DUP.

    C: PUBLISH 1, B: PUBREC 1, C: PUBREL 1
    B: nothing
       (30 s)
    C: PUBREL 1 DUP
       (60 s)
    C: PUBREL 1 DUP
       connection lost, CONNECT
    C: PUBREL 1 DUP
    B: PUBCOMP 1
    """
    d = Dialogue(keepalive=0)
    d.publish(b"a", 2)
    d.b2c(pubrec(1))
    d.c2b(publish(b"t", b"a", 2, 1), pubrel(1))
    d.wait(30)
    d.c2b(pubrel(1, dup=1))
    d.wait(60)
    d.c2b(pubrel(1, dup=1))
    d.lose()
    d.connect(False)
    d.c2b(pubrel(1, dup=1))
    d.b2c(pubcomp(1))
    assert d.client.inflight == 0


def test_c2b_qos2_pubrec_again_is_answered_by_pubrel_again():
    """31-3.5-PUBREC: the broker did not see the PUBREL; the flow goes on with it.

    C: PUBLISH 1, B: PUBREC 1, C: PUBREL 1
    B: PUBREC 1
    C: PUBREL 1
    B: PUBCOMP 1
    """
    d = Dialogue()
    d.publish(b"a", 2)
    d.b2c(pubrec(1))
    d.stream.take()
    d.b2c(pubrec(1))
    assert d.stream.take() in (pubrel(1), pubrel(1, dup=1))
    d.b2c(pubcomp(1))
    assert d.client.inflight == 0


def test_c2b_qos2_pubrel_that_never_was_on_the_wire_has_no_dup():
    """MQTT-4.3.3-6, 31-2.1-DUP.

    C: PUBLISH 1
    B: PUBLISH QoS 1 id 9, PUBREC 1, while nothing can be written
       connection lost, CONNECT
    C: PUBREL 1
    """
    d = Dialogue()
    d.publish(b"a", 2)
    d.c2b(publish(b"t", b"a", 2, 1))
    d.stream.is_blocked = True
    d.b2c(publish(b"t", b"q", 1, 9), pubrec(1))
    d.lose()
    d.connect(False)
    d.c2b(pubrel(1))


def test_c2b_qos2_pubrel_behind_answers_that_are_stuck_has_no_dup_on_the_next_connection():
    """MQTT-4.3.3-6, 31-2.1-DUP.

    C: PUBLISH 301
    B: PUBLISH QoS 1 id 9, while nothing can be written; PUBREC 301, PUBLISH id 10, 11, …
       connection lost, CONNECT
    C: PUBREL 301
    """
    for count in (0, 3, 31, 40):
        store = KeepingStore()
        store.last_id = 300
        d = Dialogue(store=store)
        assert d.publish(b"a", 2) == 301
        d.stream.take()
        d.stream.is_blocked = True
        d.b2c(publish(b"t", b"q", 1, 9))
        d.b2c(pubrec(301), *[publish(b"t", b"q", 1, 10 + k) for k in range(count)])
        d.lose()
        d.connect(False)
        d.c2b(pubrel(301))


def test_c2b_qos2_pubrel_beside_an_answer_of_the_same_id_that_is_stuck_keeps_its_dup():
    """31-2.1-DUP, 31-2.4-ID: the ids of the two directions are separate.

    C: PUBLISH 1, B: PUBREC 1, C: PUBREL 1
    B: PUBLISH QoS 1 id 1, while nothing can be written
       connection lost, CONNECT
    C: PUBREL 1 DUP
    """
    d = Dialogue()
    d.publish(b"a", 2)
    d.b2c(pubrec(1))
    d.stream.take()
    d.stream.is_blocked = True
    d.b2c(publish(b"t", b"q", 1, 1))
    d.lose()
    d.connect(False)
    d.c2b(pubrel(1, dup=int(d.level == 3)))


def test_c2b_qos2_pubrel_of_which_the_stream_takes_a_part_goes_out_whole_and_once():
    """31-3.6-PUBREL: it is written at once while nothing else waits.

    C: PUBLISH 1
    B: PUBREC 1
    C: PUBREL 1, of which the stream takes a few bytes at a time, or none for a while
    B: PUBCOMP 1
    """
    for write_most in (0, 1, 2, 3, 4):
        d = Dialogue()
        d.publish(b"a", 2)
        d.stream.take()
        d.stream.write_most = write_most
        d.stream.is_blocked = not write_most
        d.b2c(pubrec(1))
        d.stream.is_blocked = False
        for _ in range(8):
            d.client.poll()
        d.c2b(pubrel(1))
        d.b2c(pubcomp(1))
        d.c2b()
        assert d.client.inflight == 0


def test_c2b_qos2_pubrel_on_a_stream_that_dies_goes_out_on_the_next():
    """MQTT-4.3.3-6: never PUBLISH again, whatever became of the PUBREL.

    C: PUBLISH 1
    B: PUBREC 1; the stream takes nothing any more
       connection lost, CONNECT
    C: PUBREL 1
    """
    d = Dialogue()
    d.publish(b"a", 2)
    d.stream.take()
    d.stream.write_error = OSError(104)
    d.stream.feed(pubrec(1))
    assert code_of(d.client.poll) == NETWORK
    d.connect(False)
    assert d.stream.take() in (pubrel(1), pubrel(1, dup=1))
    d.b2c(pubcomp(1))
    assert d.client.inflight == 0
    d.client.poll()
    assert d.client.next_due_ms() == 45000  # nothing but the keep alive


def test_c2b_qos2_pubrel_counts_as_a_sign_of_life():
    """31-2.2-KA: silence begins with the last packet, and PUBREL is one.

    C: PUBLISH 1
       (20 s)
    B: PUBREC 1, C: PUBREL 1
       (45 s, three quarters of the keep alive)
    C: PINGREQ
    """
    d = Dialogue(keepalive=60, retry_interval=0)
    d.publish(b"a", 2)
    d.wait(20)
    d.b2c(pubrec(1))
    d.c2b(publish(b"t", b"a", 2, 1), pubrel(1))
    d.wait(44.999)
    d.c2b()
    d.wait(0.001)
    d.c2b(pingreq())


def test_c2b_qos2_puback_or_early_pubcomp_changes_nothing():
    """MQTT-4.3.3-3, MQTT-4.3.3-5: only PUBREC, then only PUBCOMP, moves the flow on.

    C: PUBLISH 1
    B: PUBACK 1, PUBCOMP 1
    C: nothing
    B: PUBREC 1, C: PUBREL 1
    B: PUBACK 1
    C: nothing
    B: PUBCOMP 1
    """
    d = Dialogue()
    d.publish(b"a", 2)
    d.b2c(puback(1), pubcomp(1))
    d.c2b(publish(b"t", b"a", 2, 1))
    d.b2c(pubrec(1))
    d.c2b(pubrel(1))
    d.b2c(puback(1))
    d.c2b()
    assert d.client.inflight == 1
    d.b2c(pubcomp(1))
    assert d.client.inflight == 0


def test_c2b_qos2_id_is_used_again_only_after_pubcomp():
    """MQTT-4.3.3-1, MQTT-4.3.3-5.

    C: PUBLISH 65535, B: PUBREC 65535, C: PUBREL 65535
       (the id has to be left out by the next life, which starts at 65535)
    """
    store = KeepingStore()
    store.last_id = 65534
    d = Dialogue(store=store)
    assert d.publish(qos=2) == 65535
    d.b2c(pubrec(65535))
    again = Dialogue(store=store, clean=False)
    assert again.publish(qos=2) == 1
    again.b2c(pubcomp(65535), pubrec(1), pubcomp(1))
    third = Dialogue(store=store, clean=False)
    assert third.publish(qos=2) == 65535


def test_c2b_qos2_pubrels_leave_in_the_order_of_the_publishes():
    """31-4.3-STAGE.

    C: PUBLISH 1, 2, 3
    B: PUBREC 3, PUBREC 2
    C: nothing
    B: PUBREC 1
    C: PUBREL 1, 2, 3
    """
    d = Dialogue()
    for payload in (b"a", b"b", b"c"):
        d.publish(payload, 2)
    d.stream.take()
    d.b2c(pubrec(3), pubrec(2))
    d.c2b()
    d.b2c(pubrec(1))
    d.c2b(pubrel(1), pubrel(2), pubrel(3))


def test_c2b_qos2_pubrels_leave_in_the_order_of_the_pubrecs():
    """MQTT-4.6.0-4: a broker answers in order, so this is the order of the PUBLISHes.

    C: PUBLISH 1, 2, 3
    B: PUBREC 1, PUBREC 2
    C: PUBREL 1, PUBREL 2
    B: PUBREC 3, PUBCOMP 1
    C: PUBREL 3
    """
    d = Dialogue()
    for payload in (b"a", b"b", b"c"):
        d.publish(payload, 2)
    d.stream.take()
    d.b2c(pubrec(1), pubrec(2))
    d.c2b(pubrel(1), pubrel(2))
    d.b2c(pubrec(3), pubcomp(1))
    d.c2b(pubrel(3))


def test_c2b_qos2_after_a_reset_goes_on_with_pubrel():
    """MQTT-4.3.3-6, MQTT-4.6.0-1: no PUBLISH after its PUBREC, a reset in between.

    C: PUBLISH 1, 2, B: PUBREC 1, C: PUBREL 1
       reset; CONNECT
    C: PUBREL 1 DUP, PUBLISH 2 DUP
    """
    store = KeepingStore()
    d = Dialogue(store=store, clean=False)
    d.publish(b"a", 2)
    d.publish(b"b", 2)
    d.b2c(pubrec(1))
    d.c2b(publish(b"t", b"a", 2, 1), publish(b"t", b"b", 2, 2), pubrel(1))
    again = Dialogue(store=store, clean=False)
    sent = again.stream.take()
    both = pubrel(1, dup=1), publish(b"t", b"b", 2, 2, dup=1)
    assert sent in (both[0] + both[1], both[1] + both[0])
    again.b2c(pubcomp(1), pubrec(2))
    again.c2b(pubrel(2))
    again.b2c(pubcomp(2))
    assert again.client.inflight == 0
