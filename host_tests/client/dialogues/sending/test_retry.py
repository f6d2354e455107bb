"""Sending again after a time-out and on a new connection.  MQTT 3.1 §4.2."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import (
    puback,
    pubcomp,
    publish,
    pubrec,
    pubrel,
    suback,
    subscribe,
    unsuback,
    unsubscribe,
)
from host_tests.standin.store import KeepingStore
from umqtt31 import CLOSED, NETWORK, TIMEOUT

# What level 5 does in their place is in `level_5/`.
BELOW_5 = (
    "test_c2b_retry_time_out_begins_anew_with_the_connection",
    "test_c2b_qos1_retry_time_out_is_settable_and_grows",
    "test_c2b_retry_time_out_stops_growing_at_64_times",
    "test_c2b_message_still_being_sent_is_not_timed_out",
)

# Time-outs without being asked, DUP on PUBREL and its place are those of MQTT 3.1.
LEVEL_3 = (
    "test_c2b_qos1_puback_lost_resends_publish_with_dup",
    "test_c2b_qos2_retry_time_out_begins_anew_with_pubrel",
    "test_c2b_qos1_retry_time_out_begins_with_the_poll_behind_publish",
    "test_c2b_qos1_retry_time_out_begins_with_the_next_due_ms_behind_publish",
    "test_c2b_qos2_retry_time_out_begins_with_the_poll_that_saw_pubrec",
    "test_c2b_only_four_kinds_of_packets_are_ever_sent_again",
    "test_c2b_reconnect_sends_everything_in_flight_again_in_order",
)


def test_c2b_qos1_puback_lost_resends_publish_with_dup():
    """31-4.1-Q1, 31-2.1-DUP, RT-INTERVAL: 30 s unless set.

    C: PUBLISH 1
       (30 s)
    C: PUBLISH 1 DUP
    B: PUBACK 1
       (an hour)
    C: nothing
    """
    d = Dialogue(keepalive=0)
    d.publish()
    d.c2b(publish(b"t", b"x", 1, 1))
    assert d.client.next_due_ms() == 30_000
    d.wait(29.999)
    d.c2b()
    assert d.client.next_due_ms() == 1
    d.wait(0.001)
    d.c2b(publish(b"t", b"x", 1, 1, dup=1))
    d.b2c(puback(1))
    d.wait(3600)
    d.c2b()


def test_c2b_retry_time_out_begins_anew_with_the_connection():
    """31-4.2-RETRY: however long there was none.

    C: PUBLISH 1
       (10 s; the link is lost; a minute)
    C: CONNECT, PUBLISH 1 DUP
       (20 s)
    C: PUBLISH 1 DUP
    """
    for gap in (1, 60):
        d = Dialogue(keepalive=0, retry_interval=20)
        d.publish()
        d.wait(10)
        d.lose()
        d.clock.sleep_ms(gap * 1000)
        d.connect(False)
        d.c2b(publish(b"t", b"x", 1, 1, dup=1))
        assert d.client.next_due_ms() == 20000
        d.wait(19.999)
        d.c2b()
        d.wait(0.001)
        d.c2b(publish(b"t", b"x", 1, 1, dup=1))


def test_c2b_qos1_retry_time_out_is_settable_and_grows():
    """31-4.2-RETRY, RT-INTERVAL.

    C: PUBLISH 1
       (5 s, 10 s, 20 s, …)
    C: PUBLISH 1 DUP each time
    """
    d = Dialogue(keepalive=0, retry_interval=5)
    d.publish()
    d.stream.take()
    d.wait(0)
    pause = 5
    for _ in range(6):
        d.wait(pause - 0.001)
        d.c2b()
        d.wait(0.001)
        d.c2b(publish(b"t", b"x", 1, 1, dup=1))
        pause *= 2
    d.b2c(puback(1))
    # The next message begins anew.
    d.publish()
    d.stream.take()
    d.wait(0)
    d.wait(5)
    d.c2b(publish(b"t", b"x", 1, 2, dup=1))


def test_c2b_retry_time_out_stops_growing_at_64_times():
    """RT-INTERVAL: after (1 + 2 + … + 32) s each further pause has 64 s."""
    d = Dialogue(keepalive=0, retry_interval=1)
    d.publish()
    d.wait(0)
    for pause in (1, 2, 4, 8, 16, 32):
        d.wait(pause)
    d.stream.take()
    for _ in range(3):
        d.wait(63.999)
        d.c2b()
        d.wait(0.001)
        d.c2b(publish(b"t", b"x", 1, 1, dup=1))


def test_c2b_qos2_retry_time_out_begins_anew_with_pubrel():
    """31-4.2-RETRY: PUBREL is another packet, so its time-out starts small again.

    C: PUBLISH 1 (10 s) PUBLISH 1 DUP (20 s) PUBLISH 1 DUP
       (4 s)
    B: PUBREC 1, C: PUBREL 1
       (10 s)
    C: PUBREL 1 DUP
    """
    d = Dialogue(keepalive=0, retry_interval=10)
    d.publish(qos=2)
    d.wait(10)
    d.wait(20)
    d.stream.take()
    d.wait(4)
    d.b2c(pubrec(1))
    d.c2b(pubrel(1))
    d.wait(9.999)
    d.c2b()
    d.wait(0.001)
    d.c2b(pubrel(1, dup=1))


def test_c2b_retry_interval_0_sends_again_only_on_reconnect():
    """RT-INTERVAL.

    C: PUBLISH 1; (a day); connection lost; C: CONNECT, PUBLISH 1 DUP
    """
    d = Dialogue(keepalive=0, retry_interval=0)
    d.publish()
    d.stream.take()
    d.wait(86000)
    d.c2b()
    d.lose()
    d.connect(False)
    d.c2b(publish(b"t", b"x", 1, 1, dup=1))


def test_c2b_message_still_being_sent_is_not_timed_out():
    """31-4.2-RETRY: the time runs from when the packet was out.

    C: PUBLISH 1, which takes 9 s to be written
       (10 s from its end)
    C: PUBLISH 1 DUP
    """
    d = Dialogue(keepalive=0, retry_interval=10, connect_timeout=60)
    d.stream.is_blocked = True
    d.publish()
    d.wait(9)
    d.stream.is_blocked = False
    d.wait(0)
    d.c2b(publish(b"t", b"x", 1, 1))
    d.wait(9.9)
    d.c2b()
    d.wait(0.1)
    d.c2b(publish(b"t", b"x", 1, 1, dup=1))


def test_c2b_stream_that_takes_nothing_ends_in_a_time_out():
    """Every wait has a deadline: writing too."""
    d = Dialogue(connect_timeout=10)
    d.stream.is_blocked = True
    d.publish()
    d.wait(9.999)
    d.clock.sleep_ms(1)
    assert code_of(d.client.poll) == TIMEOUT
    assert d.stream.is_closed
    d.connect(False)
    d.c2b(publish(b"t", b"x", 1, 1, dup=1))


def test_c2b_qos1_retry_time_out_begins_with_the_poll_behind_publish():
    """31-4.2-RETRY: what came while the program slept is looked at first.

    C: PUBLISH 1
       (29 s, no poll; poll; 30 s)
    C: PUBLISH 1 DUP
    """
    d = Dialogue(keepalive=0)
    d.publish()
    d.c2b(publish(b"t", b"x", 1, 1))
    d.wait(29)
    d.wait(29.999)
    d.c2b()
    d.wait(0.001)
    d.c2b(publish(b"t", b"x", 1, 1, dup=1))


def test_c2b_qos1_retry_time_out_begins_with_the_next_due_ms_behind_publish():
    """31-4.2-RETRY: not with what came before.

       (20 s of silence) PUBLISH 1, next_due_ms()
       (30 s)
    C: PUBLISH 1 DUP
    """
    for payload in (b"x", b"x" * 200):  # more header goes the general way
        d = Dialogue(keepalive=0)
        d.wait(20)
        d.publish(payload)
        d.c2b(publish(b"t", payload, 1, 1))
        assert d.client.next_due_ms() == 30_000
        d.wait(29.999)
        d.c2b()
        d.wait(0.001)
        d.c2b(publish(b"t", payload, 1, 1, dup=1))


def test_c2b_qos2_retry_time_out_begins_with_the_poll_that_saw_pubrec():
    """31-4.2-RETRY: however long the program slept before that poll.

    C: PUBLISH 1
       (29 s, no poll) B: PUBREC 1
    C: PUBREL 1
       (30 s)
    C: PUBREL 1 DUP
    """
    d = Dialogue(keepalive=0)
    d.publish(qos=2)
    d.c2b(publish(b"t", b"x", 2, 1))
    d.clock.sleep_ms(29_000)
    d.b2c(pubrec(1))
    d.c2b(pubrel(1))
    d.wait(29.999)
    d.c2b()
    d.wait(0.001)
    d.c2b(pubrel(1, dup=1))


def test_c2b_only_four_kinds_of_packets_are_ever_sent_again():
    """RT-OBJECTS, 31-2.1-DUP, 31-4.1-Q0: and PUBREL; at level 3 UNSUBSCRIBE as well.

    C: SUBSCRIBE 1 (30 s) SUBSCRIBE 1 DUP, B: SUBACK 1
    C: UNSUBSCRIBE 2 (30 s) UNSUBSCRIBE 2 DUP, B: UNSUBACK 2
    C: PUBLISH QoS 0, PUBLISH QoS 1 id 3, QoS 2 id 4; B: PUBLISH QoS 1, QoS 2, PUBREL
    C: PUBACK, PUBREC, PUBCOMP, PINGREQ
       (30 s)
    C: PUBLISH 3 DUP, PUBLISH 4 DUP, and nothing else
    """
    d = Dialogue(connect_timeout=3600, keepalive=0)
    d.clock.sleep_ms = lambda ms: _sleep_a_second(d.clock)
    d.stream.answer(subscribe(1, (b"a", 1)) + subscribe(1, (b"a", 1), dup=1), suback(1, 1))
    assert d.client.subscribe(b"a", 1) == [1]
    d.stream.answer(unsubscribe(2, b"a") + unsubscribe(2, b"a", dup=1), unsuback(2))
    d.client.unsubscribe(b"a")
    d.c2b()
    d.publish(b"0", 0)
    d.publish(b"1", 1)
    d.publish(b"2", 2)
    d.b2c(publish(b"t", b"x", 1, 7), publish(b"t", b"x", 2, 8), pubrel(8))
    d.client.ping()
    d.stream.take()
    d.b2c(b"\xd0\x00")
    d.wait(30)
    d.c2b(publish(b"t", b"1", 1, 3, dup=1), publish(b"t", b"2", 2, 4, dup=1))


def _sleep_a_second(clock):
    clock.now_ms += 1000


# 311-4.4.0-1, 311-4.6.0-1.
def test_c2b_reconnect_sends_everything_in_flight_again_in_order():
    """31-4.2-RECONNECT, 31-4.1-Q1, 31-4.1-Q2, MQTT-4.6.0-1.

    C: PUBLISH QoS 1 id 1, QoS 2 id 2, QoS 1 id 3, QoS 2 id 4; B: PUBREC 2, PUBACK 3
       connection lost, CONNECT
    C: PUBLISH 1 DUP, PUBREL 2, PUBLISH 4 DUP
    """
    d = Dialogue()
    for qos in (1, 2, 1, 2):
        d.publish(b"x", qos)
    d.b2c(pubrec(2), puback(3))
    d.lose()
    d.connect(False)
    sent = d.stream.take()
    assert sent.count(pubrel(2, dup=1)) == 1
    rest = sent.replace(pubrel(2, dup=1), b"")
    assert rest == publish(b"t", b"x", 1, 1, dup=1) + publish(b"t", b"x", 2, 4, dup=1)


def test_c2b_reconnect_sends_again_before_anything_new():
    """31-4.2-RECONNECT, MQTT-4.6.0-1: what waited while offline comes last.

    C: PUBLISH 1, 2; connection lost; publish 3, 4 while offline; CONNECT
    C: PUBLISH 1 DUP, PUBLISH 2 DUP, PUBLISH 3, PUBLISH 4
    """
    d = Dialogue()
    d.publish(b"1")
    d.publish(b"2", 2)
    d.lose()
    d.publish(b"3")
    d.publish(b"4", 2)
    d.connect(False)
    d.c2b(
        publish(b"t", b"1", 1, 1, dup=1),
        publish(b"t", b"2", 2, 2, dup=1),
        publish(b"t", b"3", 1, 3),
        publish(b"t", b"4", 2, 4),
    )


def test_c2b_after_a_reset_everything_is_sent_again_in_order():
    """MQTT-4.6.0-1: over a reboot too, QoS 1 and 2 together.

    C: PUBLISH QoS 2 id 1, QoS 1 id 2, QoS 2 id 3; reset; CONNECT, session kept
    C: PUBLISH 1 DUP, PUBLISH 2 DUP, PUBLISH 3 DUP
    """
    store = KeepingStore()
    d = Dialogue(store=store, clean=False)
    for qos in (2, 1, 2):
        d.publish(b"x", qos)
    again = Dialogue(store=store, clean=False)
    again.c2b(*[publish(b"t", b"x", qos, k, dup=1) for k, qos in ((1, 2), (2, 1), (3, 2))])


def test_c2b_message_that_never_was_on_the_wire_has_no_dup_after_reconnect():
    """31-2.1-DUP: 0 the first time it is sent.

    publish() while offline; CONNECT; C: PUBLISH 1 (DUP 0)
    """
    d = Dialogue()
    d.lose()
    d.publish(b"1")
    d.connect(False)
    d.c2b(publish(b"t", b"1", 1, 1))


def test_c2b_half_a_publish_is_sent_whole_again_on_the_new_connection():
    """31-4.2-RECONNECT: nothing of the old half leaks into the new stream.

    C: half of PUBLISH 1; connection lost; CONNECT, PUBLISH 1 DUP
    """
    d = Dialogue()
    d.stream.write_most = 4
    d.publish(b"0123456789")
    d.lose()
    d.connect(False)
    d.c2b(publish(b"t", b"0123456789", 1, 1, dup=1))
    d.b2c(puback(1))
    assert d.client.inflight == 0


def test_c2b_publish_into_a_dead_connection_keeps_the_message():
    """Nothing accepted is lost: publish() returns its id, poll() tells of the loss."""
    d = Dialogue()
    d.stream.write_error = OSError(32)
    assert d.publish(b"1") == 1
    assert not d.client.is_connected
    d.connect(False)
    d.c2b(publish(b"t", b"1", 1, 1, dup=1))


def test_c2b_qos0_into_a_dead_connection_raises():
    """31-4.1-Q0: it cannot be kept, so the caller is told."""
    d = Dialogue()
    d.stream.write_error = OSError(32)
    assert code_of(d.publish, b"0", 0) == NETWORK


def test_c2b_clean_session_gives_up_what_was_in_flight_and_says_so():
    """31-3.1-CLEAN: clean session 1 discards the session on the client too.

    C: PUBLISH 1, B: nothing, C: PUBLISH QoS 2 id 2, B: PUBREC 2
       connection lost; publish 3 while offline; CONNECT, clean session
    C: PUBLISH 3 only; on_drop was told of 1 and 2
    """
    d = Dialogue()
    dropped = d.watch_drops()
    d.publish(b"1")
    d.publish(b"2", 2)
    d.b2c(pubrec(2))
    d.lose()
    d.publish(b"3")
    d.connect(True)
    d.c2b(publish(b"t", b"3", 1, 3))
    assert dropped == [(1, CLOSED), (2, CLOSED)] and d.client.stats.dropped == 2


def test_c2b_late_answers_on_a_new_connection_are_survived():
    """RT-OBJECTS: both answers to a message sent twice are taken, one counts.

    C: PUBLISH 1, (30 s) PUBLISH 1 DUP
    B: PUBACK 1, PUBACK 1
    C: PUBLISH QoS 2 id 2, (30 s) PUBLISH 2 DUP
    B: PUBREC 2, PUBCOMP 2, PUBREC 2, PUBCOMP 2
    C: PUBREL 2, PUBREL 2
    """
    d = Dialogue()
    d.publish()
    d.wait(30)
    d.b2c(puback(1), puback(1))
    d.publish(qos=2)
    d.wait(30)
    d.stream.take()
    d.b2c(pubrec(2))
    d.b2c(pubcomp(2))
    d.b2c(pubrec(2))
    d.b2c(pubcomp(2))
    d.c2b(pubrel(2), pubrel(2))
    assert d.client.inflight == 0


def test_c2b_packet_that_goes_out_slowly_is_not_given_up_while_it_goes_on():
    """What counts for connect_timeout is the time since the last byte that went out."""
    d = Dialogue(keepalive=0, connect_timeout=10, retry_interval=0)
    d.stream.write_most = 4
    d.publish(b"x" * 20)
    for _ in range(12):
        d.clock.now_ms += 9000
        d.client.poll()
    d.c2b(publish(b"t", b"x" * 20, 1, 1))
    d.stream.is_blocked = True
    d.publish(b"y" * 20)
    d.clock.now_ms += 9999
    d.client.poll()
    d.clock.now_ms += 1
    assert code_of(d.client.poll) == TIMEOUT
