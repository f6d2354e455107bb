"""Messages from the broker.  MQTT 3.1 §3.3 to §3.7; MQTT 5 §4.3, §4.6 (receiver)."""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import puback, pubcomp, publish, pubrec, pubrel
from host_tests.standin.store import KeepingStore
from umqtt31 import AWAITING_REL, PROTOCOL


# 311-3.3.4-1, MQTT-3.3.4-1.
def test_b2c_qos0_is_handed_over_and_not_answered():
    """31-2.1-RETAIN, 31-3.3-EMPTY, 31-3.3-IDQOS: topic, payload and flags are shown.

    B: PUBLISH QoS 0; retained; empty; with what looks like an id
    """
    d = Dialogue()
    d.b2c(
        publish(b"t", b"hello"),
        publish(b"t", b"", retain=1),
        publish(b"t", b"\x00\x07", dup=1),
    )
    assert d.messages == [
        (b"t", b"hello", 0, False, False),
        (b"t", b"", 0, True, False),
        (b"t", b"\x00\x07", 0, False, True),
    ]
    d.c2b()


# 311-2.3.1-6, 311-3.3.4-1, 311-4.3.2-2, MQTT-2.2.1-5, MQTT-3.3.4-1.
def test_b2c_qos1_is_handed_over_and_answered():
    """31-3.3-QOS1RX, MQTT-4.3.2-4.

    B: PUBLISH QoS 1 id 517
    C: PUBACK 517, once the handler has returned
    """
    d = Dialogue()
    handler = d.client.on_message
    sent = []
    d.client.on_message = lambda message: (sent.append(d.stream.sent), handler(message))
    d.b2c(publish(b"t", b"hi", 1, 517))
    assert sent == [b""]
    d.c2b(b"\x40\x02\x02\x05")
    assert d.messages == [(b"t", b"hi", 1, False, False)]


def test_b2c_qos1_same_id_again_is_a_new_message_whatever_dup_says():
    """31-2.1-DUPHINT, MQTT-4.3.2-5.

    B: PUBLISH QoS 1 id 5, C: PUBACK 5
    B: PUBLISH QoS 1 id 5 DUP, C: PUBACK 5
    B: PUBLISH QoS 1 id 5, C: PUBACK 5
    """
    d = Dialogue()
    for dup in (0, 1, 0):
        d.b2c(publish(b"t", b"same", 1, 5, dup))
        d.c2b(puback(5))
        assert d.take_messages() == [(b"t", b"same", 1, False, bool(dup))]


def test_b2c_qos2_first_with_dup_is_a_new_message():
    """31-2.1-DUPHINT: DUP alone makes no duplicate.

    B: PUBLISH QoS 2 id 5 DUP, C: PUBREC 5, B: PUBREL 5, C: PUBCOMP 5; twice
    """
    d = Dialogue()
    for _ in range(2):
        d.b2c(publish(b"t", b"x", 2, 5, dup=1), pubrel(5))
        d.c2b(pubrec(5), pubcomp(5))
    assert len(d.messages) == 2


# 311-2.3.1-6, 311-3.3.4-1, 311-4.3.3-2, MQTT-2.2.1-5, MQTT-3.3.4-1.
def test_b2c_qos2_is_handed_over_exactly_once():
    """31-3.3-QOS2RX, MQTT-4.3.3-8, MQTT-4.3.3-10, MQTT-4.3.3-11, MQTT-4.3.3-12.

    B: PUBLISH QoS 2 id 5, C: PUBREC 5
    B: PUBLISH QoS 2 id 5 DUP, C: PUBREC 5
    B: PUBLISH QoS 2 id 5, C: PUBREC 5
    B: PUBREL 5, C: PUBCOMP 5
    B: PUBREL 5 DUP, C: PUBCOMP 5
    B: PUBLISH QoS 2 id 5, C: PUBREC 5 (a new message)
    """
    d = Dialogue()
    for dup in (0, 1, 0):
        d.b2c(publish(b"t", b"one", 2, 5, dup))
        d.c2b(pubrec(5))
    d.b2c(pubrel(5))
    d.c2b(pubcomp(5))
    d.b2c(pubrel(5, dup=int(d.level == 3)))
    d.c2b(pubcomp(5))
    d.b2c(publish(b"t", b"two", 2, 5))
    d.c2b(pubrec(5))
    assert [message[1] for message in d.messages] == [b"one", b"two"]
    assert d.client.stats.duplicates == 2


# 311-4.1.0-1.
def test_b2c_qos2_over_a_lost_connection_is_handed_over_once():
    """MQTT-4.3.3-10, 31-3.3-QOS2RX.

    B: PUBLISH QoS 2 id 5, C: PUBREC 5; connection lost; CONNECT, session kept
    B: PUBLISH QoS 2 id 5 DUP, C: PUBREC 5
    B: PUBREL 5, C: PUBCOMP 5
    """
    d = Dialogue(clean=False)
    d.b2c(publish(b"t", b"one", 2, 5))
    d.lose()
    d.connect(False)
    d.b2c(publish(b"t", b"one", 2, 5, dup=1), pubrel(5))
    d.c2b(pubrec(5), pubcomp(5))
    assert len(d.messages) == 1


# 311-4.3.3-2.
def test_b2c_qos2_over_a_reset_is_handed_over_once():
    """MQTT-4.3.3-10: the held id survives a reset in between.

    B: PUBLISH QoS 2 id 5, C: PUBREC 5; reset; CONNECT, session kept
    B: PUBLISH QoS 2 id 5 DUP, C: PUBREC 5
    B: PUBREL 5, C: PUBCOMP 5
    """
    store = KeepingStore()
    d = Dialogue(store=store, clean=False)
    d.b2c(publish(b"t", b"one", 2, 5))
    again = Dialogue(store=store, clean=False)
    again.b2c(publish(b"t", b"one", 2, 5, dup=1), pubrel(5))
    again.c2b(pubrec(5), pubcomp(5))
    assert len(d.messages) == 1 and not again.messages


def test_b2c_qos2_id_is_recorded_before_its_pubrec_leaves():
    """MQTT-4.3.3-8, MQTT-4.3.3-10: a reset after the PUBREC must know the id.

    B: PUBLISH QoS 2 id 5
       the id is committed
    C: PUBREC 5
    """
    store = KeepingStore()
    d = Dialogue(store=store)
    seen = []
    store.before_commit = lambda: seen.append((list(store.held), d.stream.sent))
    d.b2c(publish(b"t", b"one", 2, 5))
    assert ([5], b"") in seen
    d.c2b(pubrec(5))


def test_b2c_qos2_clean_session_forgets_the_broker_s_ids():
    """31-3.1-CLEAN: after it the same id is a new message.

    B: PUBLISH QoS 2 id 5, C: PUBREC 5; CONNECT with clean session
    B: PUBLISH QoS 2 id 5, C: PUBREC 5
    """
    d = Dialogue()
    d.b2c(publish(b"t", b"one", 2, 5))
    d.connect(True)
    d.b2c(publish(b"t", b"two", 2, 5))
    assert [message[1] for message in d.messages] == [b"one", b"two"]


def test_b2c_pubrel_of_an_unknown_id_is_answered():
    """MQTT-4.3.3-11: answered by PUBCOMP with the same id, known or not.

    B: PUBREL 77
    C: PUBCOMP 77
    """
    d = Dialogue()
    d.b2c(pubrel(77))
    d.c2b(pubcomp(77))


# 311-4.6.0-2, 311-4.6.0-3.
def test_b2c_pubacks_and_pubrecs_leave_in_the_order_of_the_publishes():
    """MQTT-4.6.0-2, MQTT-4.6.0-3.

    B: PUBLISH QoS 1 id 9, QoS 2 id 3, QoS 1 id 1, QoS 0, QoS 2 id 8, … 20 in all
    C: PUBACK 9, PUBREC 3, PUBACK 1, PUBREC 8, …
    """
    d = Dialogue(max_awaiting_rel=16)
    packets = [(1, 9), (2, 3), (1, 1), (0, 0), (2, 8), (1, 4), (1, 2), (2, 7)]
    packets += [(1 + k % 2, 100 - k) for k in range(12)]
    d.b2c(*[publish(b"t", b"x", qos, packet_id) for qos, packet_id in packets])
    answers = [None, puback, pubrec]
    d.c2b(*[answers[qos](packet_id) for qos, packet_id in packets if qos])
    assert [message[2] for message in d.messages] == [qos for qos, _ in packets]


# 311-3.3.1-4, MQTT-3.3.1-4.
def test_b2c_qos3_is_a_protocol_error():
    """31-2.1-QOS3.

    B: PUBLISH with both QoS bits set
    C: closes
    """
    for dup_and_retain in (0, 1, 8, 9):
        d = Dialogue()
        d.stream.feed(bytes((0x36 | dup_and_retain,)) + b"\x06\x00\x01t\x00\x05x")
        assert code_of(d.client.poll) == PROTOCOL
        assert d.stream.is_closed and not d.messages
        d.c2b(*d.farewell(0x81))


def test_b2c_packet_id_0_is_a_protocol_error():
    """31-2.4-ID: 0 is no packet id."""
    for qos in (1, 2):
        d = Dialogue()
        d.stream.feed(publish(b"t", b"x", qos, 0))
        assert code_of(d.client.poll) == PROTOCOL
        assert not d.messages


def test_b2c_more_qos2_than_there_is_room_for_are_not_taken():
    """RT-AWAITREL: nor any that follows on this connection, so that none overtakes.

    B: PUBLISH QoS 2 id 1, 2, 3 with max_awaiting_rel 2
    C: PUBREC 1, PUBREC 2
    B: PUBREL 1, C: PUBCOMP 1
    B: PUBLISH 4, PUBLISH 3 DUP, PUBLISH 2 DUP
    C: PUBREC 2
    B: PUBREL 2, C: PUBCOMP 2, closes; CONNECT
    B: PUBLISH 3 DUP, PUBLISH 4 DUP, C: PUBREC 3, PUBREC 4
    """
    d = Dialogue(max_awaiting_rel=2)
    d.b2c(*[publish(b"t", b"%d" % k, 2, k) for k in (1, 2, 3)])
    d.c2b(pubrec(1), pubrec(2))
    d.b2c(pubrel(1))
    d.c2b(pubcomp(1))
    d.b2c(publish(b"t", b"4", 2, 4), publish(b"t", b"3", 2, 3, 1), publish(b"t", b"2", 2, 2, 1))
    d.c2b(pubrec(2))
    assert d.client.stats.refused == 3
    d.stream.feed(pubrel(2))
    assert code_of(d.work) == AWAITING_REL
    d.c2b(pubcomp(2), *d.farewell(0x93))
    d.connect(False)
    d.b2c(publish(b"t", b"3", 2, 3, 1), publish(b"t", b"4", 2, 4, 1))
    d.c2b(pubrec(3), pubrec(4))
    assert [message[1] for message in d.messages] == [b"1", b"2", b"3", b"4"]


def test_b2c_refused_qos2_makes_the_broker_send_again():
    """RT-AWAITREL: a broker sends again only on a new connection, so there is one.

    B: PUBLISH QoS 2 id 1, 2 with max_awaiting_rel 1
    C: PUBREC 1
    B: PUBREL 1
    C: PUBCOMP 1, closes
    """
    d = Dialogue(max_awaiting_rel=1)
    d.b2c(publish(b"t", b"1", 2, 1), publish(b"t", b"2", 2, 2))
    d.stream.feed(pubrel(1))
    assert code_of(d.work) == AWAITING_REL
    d.c2b(pubrec(1), pubcomp(1), *d.farewell(0x93))
    d.connect(False)
    d.b2c(publish(b"t", b"2", 2, 2, 1))
    assert [message[1] for message in d.messages] == [b"1", b"2"]


def test_b2c_qos2_id_waits_its_time_however_long_the_program_has_slept_before():
    """RT-AWAITREL-T: from the PUBLISH on, not from the last look at the clock.

       (200 s, no poll)
    B: PUBLISH QoS 2 id 1, C: PUBREC 1
       (299 s)
    B: PUBLISH QoS 2 DUP id 1, C: PUBREC 1, nothing handed over
    """
    d = Dialogue(keepalive=0)
    d.clock.sleep_ms(200_000)
    d.b2c(publish(b"t", b"1", 2, 1))
    d.wait(299)
    d.b2c(publish(b"t", b"1", 2, 1, 1))
    d.c2b(pubrec(1), pubrec(1))
    assert len(d.messages) == 1


def test_b2c_pubrel_that_does_not_come_frees_its_place_after_a_time():
    """RT-AWAITREL-T: await_rel_timeout, 300 s unless set.

    B: PUBLISH QoS 2 id 1, C: PUBREC 1
       (await_rel_timeout)
    B: PUBLISH QoS 2 id 2, C: PUBREC 2
    """
    for options, seconds in (({}, 300), ({"await_rel_timeout": 20}, 20)):
        d = Dialogue(max_awaiting_rel=1, keepalive=0, **options)
        d.b2c(publish(b"t", b"1", 2, 1))
        assert d.client.next_due_ms() == seconds * 1000
        d.wait(seconds - 0.001)
        d.b2c(publish(b"t", b"1", 2, 1, 1))
        assert len(d.take_messages()) == 1
        d.wait(0.001)
        d.b2c(publish(b"t", b"2", 2, 2))
        d.c2b(pubrec(1), pubrec(1), pubrec(2))
        assert len(d.messages) == 1
