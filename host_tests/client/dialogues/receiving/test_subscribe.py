"""SUBSCRIBE and UNSUBSCRIBE.  MQTT 3.1 §3.8 to §3.11."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import puback, publish, suback, subscribe, unsuback, unsubscribe
from umqtt31 import CLOSED, FULL, NETWORK, PROTOCOL, TIMEOUT, TOO_LARGE

# At level 4 session present decides, and nothing is marked DUP but PUBLISH.
LEVEL_3 = (
    "test_c2b_subscriptions_are_sent_again_on_every_connect",
    "test_c2b_resubscribe_lost_is_sent_again_with_dup",
    "test_c2b_subscribe_is_timed_from_when_it_went_out_until_its_answer",
)


def test_c2b_subscribe_one_filter_returns_the_granted_qos():
    """31-3.8-SUB, 31-3.9-SUBACK, 31-2.6-UNUSED: a lower grant is visible.

    C: SUBSCRIBE 1 ("a/b", 2)
    B: SUBACK 1 (1)
    """
    d = Dialogue()
    request, reply = subscribe(1, (b"a/b", 2)), suback(1, 1)
    assert d.subscribe(request, reply, "a/b", 2) == [1]
    d.c2b()


# 311-3.9.3-1.
def test_c2b_subscribe_several_filters_returns_grants_in_their_order():
    """31-3.8-SUB, 31-3.9-SUBACK.

    C: SUBSCRIBE 1 ("a", 0) ("+/b", 2) ("#", 1)
    B: SUBACK 1 (0, 1, 1)
    """
    d = Dialogue()
    pairs = [(b"a", 0), (b"+/b", 2), (b"#", 1)]
    assert d.subscribe(subscribe(1, *pairs), suback(1, 0, 1, 1), pairs) == [0, 1, 1]


def test_b2c_publish_before_suback_is_handled_as_any_other():
    """31-3.8-EARLY.

    C: SUBSCRIBE 1
    B: PUBLISH QoS 1 id 9, C: PUBACK 9
    B: SUBACK 1
    """
    d = Dialogue()
    reply = publish(b"a", b"early", 1, 9, retain=1) + suback(1, 1)
    assert d.subscribe(subscribe(1, (b"a", 1)), reply, b"a", 1) == [1]
    assert d.messages == [(b"a", b"early", 1, True, False)]
    d.c2b(puback(9))


def test_c2b_subscribe_whose_wait_a_handler_ends_raises():
    """31-3.9-SUBACK: what was not answered is not granted.

    C: SUBSCRIBE 1
    B: PUBLISH, in whose handler the program disconnects
    """
    d = Dialogue()
    d.client.on_message = lambda message: d.client.disconnect()
    d.stream.answer(subscribe(1, (b"a", 1)), publish(b"t", b"x"))
    assert code_of(d.client.subscribe, "a", 1) == CLOSED


def test_c2b_unsubscribe_is_confirmed_by_its_id():
    """31-3.10-UNSUB: one or more filters.

    C: UNSUBSCRIBE 1 ("a")
    B: UNSUBACK 9, UNSUBACK 1
    C: UNSUBSCRIBE 2 ("b", "c/#")
    B: UNSUBACK 2
    """
    d = Dialogue()
    d.stream.answer(unsubscribe(1, b"a"), unsuback(9) + unsuback(1))
    assert d.client.unsubscribe("a") is None
    d.stream.answer(unsubscribe(2, b"b", b"c/#"), unsuback(2, *d.codes(2)))
    d.client.unsubscribe([b"b", "c/#"])
    assert d.stream.has_answered()
    d.c2b()


def test_c2b_subscribe_without_answer_times_out():
    """31-3.9-SUBACK: the wait has a deadline, connect_timeout.

    C: SUBSCRIBE 1
    B: nothing, or the SUBACK of another id
    """
    for call in ("subscribe", "unsubscribe"):
        d = Dialogue(connect_timeout=5, retry_interval=0)
        d.stream.feed(suback(7, 0), unsuback(7))
        assert code_of(getattr(d.client, call), b"a") == TIMEOUT
        assert 5000 <= d.clock.now_ms <= 5020
        assert d.stream.is_closed
        d.connect()


def test_c2b_subscribe_while_offline_says_closed():
    d = Dialogue()
    d.lose()
    assert code_of(d.client.subscribe, b"a") == CLOSED
    assert code_of(d.client.unsubscribe, b"a") == CLOSED
    d.connect()
    d.c2b()


# 311-3.8.3-3, 311-3.10.3-2, 311-4.7.3-1, MQTT-3.8.3-2, MQTT-3.10.3-2, MQTT-4.7.3-1.
def test_c2b_subscribe_bad_filters_are_refused_and_nothing_sent():
    """31-A-HASH, 31-A-PLUS, 31-A-TOPIC: the argument is checked before anything is sent."""
    d = Dialogue(buffer_size=64)
    for bad in (b"", b"a#", b"a/#/b", b"#/", b"##", b"a+", b"+a", b"a/+b/c", b"\x00", b"\xff"):
        assert isinstance(error_of(d.client.subscribe, bad), ValueError), bad
        assert isinstance(error_of(d.client.unsubscribe, bad), ValueError), bad
    assert isinstance(error_of(d.client.subscribe, []), ValueError)
    assert isinstance(error_of(d.client.unsubscribe, []), ValueError)
    assert isinstance(error_of(d.client.subscribe, None), (TypeError, ValueError))
    most = 57 if d.level < 5 else 56
    assert code_of(d.client.subscribe, b"x" * (most + 1)) == TOO_LARGE
    assert code_of(d.client.unsubscribe, b"x" * (most + 2)) == TOO_LARGE
    d.work()
    d.c2b()
    request = subscribe(1, (b"x" * most, 1))
    assert len(request) == 64
    assert d.subscribe(request, suback(1, 1), b"x" * most, 1) == [1]


def test_b2c_suback_with_the_wrong_number_of_grants_is_a_protocol_error():
    """31-3.9-SUBACK.

    C: SUBSCRIBE 1 (two filters)
    B: SUBACK 1 with one or three grants; UNSUBACK 1
    """
    for wrong in (suback(1, 0), suback(1, 0, 0, 0), b"\x90\x02\x00\x01", unsuback(1)):
        d = Dialogue()
        d.stream.answer(subscribe(1, (b"a", 0), (b"b", 0)), wrong)
        assert code_of(d.client.subscribe, [(b"a", 0), (b"b", 0)]) == PROTOCOL, wrong
        assert d.stream.is_closed


def test_b2c_stray_suback_and_unsuback_are_survived():
    """Answers of nothing are no error."""
    d = Dialogue()
    d.b2c(suback(1, 0), unsuback(1), suback(65535, 0, 1, 2))
    assert d.client.is_connected
    d.c2b()


def test_c2b_subscriptions_are_sent_again_on_every_connect():
    """31-3.8-SUB: at level 3 the broker cannot say that it kept them.

    C: SUBSCRIBE ("a", 1) ("b", 2), SUBSCRIBE ("c", 0), UNSUBSCRIBE ("b")
       connection lost, CONNECT, session kept
    C: SUBSCRIBE of "a" with QoS 1 and of "c" with QoS 0, and nothing of "b"
    """
    d = Dialogue(clean=False)
    d.subscribe(subscribe(1, (b"a", 1), (b"b", 2)), suback(1, 1, 2), [(b"a", 1), (b"b", 2)])
    d.subscribe(subscribe(2, (b"c", 0)), suback(2, 0), b"c")
    d.stream.answer(unsubscribe(3, b"b"), unsuback(3))
    d.client.unsubscribe(b"b")
    for first in (4, 6):
        d.lose()
        d.connect(False)
        d.c2b(subscribe(first, (b"a", 1)))
        d.b2c(suback(first, 1))
        d.c2b(subscribe(first + 1, (b"c", 0)))
        d.b2c(suback(first + 1, 0))
        d.c2b()


def test_c2b_resubscribe_lost_is_sent_again_with_dup():
    """31-2.1-DUP: and is done before the caller's own SUBSCRIBE.

    C: CONNECT, SUBSCRIBE ("a"), B: nothing
       (30 s)
    C: SUBSCRIBE ("a") DUP
    """
    d = Dialogue(keepalive=0)
    d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
    d.connect()
    d.c2b(subscribe(2, (b"a", 1)))
    assert d.client.next_due_ms() == 30000
    d.wait(30)
    d.c2b(subscribe(2, (b"a", 1), dup=1))
    d.lose()
    d.connect()
    d.c2b(subscribe(3, (b"a", 1)))


def test_c2b_subscribe_waits_for_the_answer_to_what_is_sent_again():
    """One request at a time, so that each answer is that of its own.

    CONNECT
    C: SUBSCRIBE ("a"), B: nothing
       subscribe("b") ends in a time-out, and has sent nothing
    """
    d = Dialogue()
    d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
    d.connect()
    d.c2b(subscribe(2, (b"a", 1)))
    assert code_of(d.client.subscribe, b"b", 1) == TIMEOUT
    d.c2b()
    d.connect()
    d.c2b(subscribe(3, (b"a", 1)))
    d.stream.feed(None, suback(3, 1))
    assert d.subscribe(subscribe(4, (b"b", 0)), suback(4, 0), b"b") == [0]


def test_c2b_subscribe_is_timed_from_when_it_went_out_until_its_answer():
    """RT-INTERVAL: not from what came long before it, and not behind SUBACK.

       (100 s)
    C: SUBSCRIBE 1
       (5 s)
    C: SUBSCRIBE 1 DUP
    B: SUBACK 1
       (a day)
    C: nothing
    """
    d = Dialogue(keepalive=0, retry_interval=5, connect_timeout=8)
    d.wait(100)
    before = d.clock.now_ms
    request, again = subscribe(1, (b"a", 1)), subscribe(1, (b"a", 1), dup=1)
    d.stream.answer(request + again, suback(1, 1))
    assert d.client.subscribe(b"a", 1) == [1]
    assert 5000 <= d.clock.now_ms - before <= 5010
    assert d.client.next_due_ms() == 86400000
    d.stream.take()
    d.wait(86400)
    d.c2b()


def test_c2b_subscribe_again_replaces_the_remembered_qos():
    """C: SUBSCRIBE ("a", 0), SUBSCRIBE ("a", 2); CONNECT; C: SUBSCRIBE ("a", 2) only."""
    d = Dialogue()
    d.subscribe(subscribe(1, (b"a", 0)), suback(1, 0), b"a", 0)
    d.subscribe(subscribe(2, (b"a", 2)), suback(2, 2), b"a", 2)
    d.connect()
    d.c2b(subscribe(3, (b"a", 2)))
    d.b2c(suback(3, 2))
    d.c2b()


def test_c2b_more_filters_than_max_subscriptions_are_refused():
    """FULL, and nothing is sent or forgotten."""
    d = Dialogue(max_subscriptions=2)
    d.subscribe(subscribe(1, (b"a", 0)), suback(1, 0), b"a")
    assert code_of(d.client.subscribe, [(b"b", 0), (b"c", 0)]) == FULL
    d.c2b()
    d.subscribe(subscribe(2, (b"b", 0)), suback(2, 0), b"b")
    assert code_of(d.client.subscribe, b"c") == FULL
    d.subscribe(subscribe(3, (b"b", 1)), suback(3, 1), b"b", 1)


def test_c2b_subscriptions_are_sent_again_when_a_connack_may_have_been_lost():
    """Session present does not tell that it is the one that the filters were in.

    CONNECT, and the broker, which has lost its session, begins a new one; its CONNACK is
    lost.  CONNECT, CONNACK with session present
    C: SUBSCRIBE 2 ("a", 1)
    """
    d = Dialogue(clean=False)
    d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
    d.lose()
    stream = d.new_stream(False)
    stream._answers[0] = stream._answers[0][0], b"\x20"
    stream.feed(OSError(104))
    assert code_of(d.client.connect, False, stream) == NETWORK
    d.reconnect(False)
    d.work()
    d.c2b(subscribe(2, (b"a", 1)))
    d.b2c(suback(2, 1))
    d.lose()
    d.reconnect(False)
    d.work()
    d.c2b(*[subscribe(3, (b"a", 1))] * (d.level < 4))


def test_c2b_lost_while_subscribing_is_sent_on_the_next_connection():
    """C: SUBSCRIBE 1; connection lost; CONNECT; C: SUBSCRIBE 2 with DUP 0."""
    d = Dialogue()
    d.stream.answer(subscribe(1, (b"a", 1)), b"")
    assert code_of(d.client.subscribe, b"a", 1) == CLOSED
    d.connect()
    d.c2b(subscribe(2, (b"a", 1)))


# 311-2.3.1-2, MQTT-2.2.1-3.
def test_c2b_subscribe_id_is_not_one_of_a_message_in_flight():
    """31-2.4-ID: SUBSCRIBE and PUBLISH share the client's ids.

    C: PUBLISH 1, SUBSCRIBE 2, PUBLISH 3
    """
    d = Dialogue()
    assert d.publish() == 1
    d.stream.take()
    d.subscribe(subscribe(2, (b"a", 0)), suback(2, 0), b"a")
    assert d.publish() == 3
