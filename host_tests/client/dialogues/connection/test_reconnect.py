"""reconnect(): back-off with full jitter that never blocks longer than asked."""

import umqtt31
from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import connack, publish
from host_tests.standin.stream import ScriptedStream
from umqtt31 import CLOSED, NETWORK, PROTOCOL, REFUSED_UNAVAILABLE, TIMEOUT


def attempts(d, count):
    """-> for each of `count` attempts that fail, the milliseconds waited before it."""
    waits = []
    for _ in range(count):
        opened, start = d.opened, d.clock.now_ms
        while d.opened == opened:
            assert d.client.reconnect() is False
            d.clock.sleep_ms(max(1, d.client.next_due_ms()))
            assert d.clock.now_ms - start <= 130000, "no attempt"
        waits.append(d.clock.now_ms - start)
    return waits


def test_reconnect_waits_grow_to_max_pause_and_are_spread():
    """A fleet that lost its broker must not come back in one moment.

    The n-th attempt comes within 2^(n-1) s, `max_pause` at most, at a random time.
    """
    for seconds, options in ((30, {}), (128, {"max_pause": 128}), (3, {"max_pause": 3})):
        first, later = [], []
        for _ in range(30):
            d = Dialogue(is_connected=False, **options)
            waits = attempts(d, 10)
            for n, wait_ms in enumerate(waits):
                assert wait_ms <= min(1000 << n, seconds * 1000) + 5, waits
            first.append(waits[0])
            later.append(max(waits))
        assert len(set(first)) > 10 and max(first) > 500  # jitter from the first attempt on
        assert max(later) > seconds * 900


def test_reconnect_begins_small_again_after_a_connection_that_worked():
    d = Dialogue()
    d.lose()
    attempts(d, 8)
    d.connect()
    d.b2c(publish(b"t", b"x"))
    d.lose()
    for _ in range(3):
        assert attempts(d, 1)[0] <= 4005


def test_reconnect_goes_on_where_it_stopped():
    """C: half of CONNECT in one call, the rest in the next; B: CONNACK in a third."""
    d = Dialogue()
    d.publish(b"1")
    d.lose()
    stream = d.next_stream = ScriptedStream(write_most=3)
    opened = d.opened
    for _ in range(3000):
        if d.client.reconnect():
            raise AssertionError("connected without CONNACK")
        d.clock.sleep_ms(1)
        if len(stream.sent) == len(d.connect_packet(False)):
            break
    assert d.opened == opened + 1
    assert stream.take() == d.connect_packet(False)
    stream.feed(connack(0, d.level > 3))
    assert d.client.reconnect() is True
    assert stream.take() == publish(b"t", b"1", 1, 1, dup=1)[:3]
    assert d.client.stats.reconnects == 1


def test_reconnect_says_why_it_failed():
    """31-2.2-RC: "unavailable" passes.

    C: CONNECT; B: CONNACK 3 / 4, garbage, closes, nothing
    """
    for reply, code in (
        (connack(REFUSED_UNAVAILABLE), REFUSED_UNAVAILABLE),
        (publish(b"t", b"x"), PROTOCOL),
        (b"", CLOSED),
        (None, TIMEOUT),
    ):
        d = Dialogue(connect_timeout=2)
        d.lose()
        stream = d.next_stream = ScriptedStream()
        stream.answer(d.connect_packet(False), reply)
        assert d.client.reconnect(4000) is False
        assert d.client.last_error.code in (code, NETWORK), reply
        assert stream.is_closed
        d.connect()
        assert d.client.last_error is None


def test_connect_to_an_unreachable_broker_is_a_network_error():
    """The message names the server, the port and what the system said."""
    d = Dialogue(is_connected=False)
    assert code_of(d.client.connect) == NETWORK
    try:
        d.client.connect()
    except umqtt31.MQTTError as error:
        assert "broker" in str(error) and "1883" in str(error)
    d.connect()
