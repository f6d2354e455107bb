"""SUBSCRIBE and UNSUBSCRIBE.  MQTT 3.1 §3.8 to §3.11."""

from host_tests.client.dialogue import Dialogue, code_of, error_of
from host_tests.client.wire import publish, suback, subscribe, unsuback, unsubscribe
from umqtt31 import CLOSED, NETWORK, PROTOCOL, TIMEOUT, TOO_LARGE

# At level 4 session present decides, and nothing is marked DUP but PUBLISH.
LEVEL_3 = ("test_c2b_subscribe_is_timed_from_when_it_went_out_until_its_answer",)


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
