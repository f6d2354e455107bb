"""The program's calls inside on_drop, on_oversize and the handler: a clear error or none.

Only MQTTError, ValueError and TypeError may come out, and all goes on afterwards.
"""

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.wire import properties, puback, publish
from umqtt31 import MQTTError
from umqtt31.properties import encode

LEVEL_5 = ("test_publish_inside_on_drop_changes_nothing_of_the_message_that_waits_for_room",)

CALLS = (
    ("disconnect",), ("connect",), ("reconnect",), ("poll",), ("wait_msg",), ("flush", 1000),
    ("ping",), ("subscribe", b"a"), ("unsubscribe", b"a"), ("next_due_ms",),
    ("publish", b"t", b"in hook"), ("publish", b"t", b"in hook", False, 1),
    ("publish", b"t", b"in hook", False, 1, None), ("publish", b"t", b"in hook", False, 1, 5),
)  # fmt: skip


def assert_each_call_is_survived(hook, times, happen, messages=(), is_present=None, **options):
    """A client with these messages and a hook that makes one of CALLS: `happen(d)` calls it so
    often.  All that is still there arrives on a new connection, each message once."""
    for call in CALLS:
        d = Dialogue(**options)
        for fields in messages:
            d.publish(**fields)
        if d.stream:
            d.stream.take()
        seen = []

        def hooked(*args, call=call, client=d.client, seen=seen):
            seen.append(client.stats.dropped + client.inflight + client.queued)
            try:
                getattr(client, call[0])(*call[1:])
            except (MQTTError, ValueError, TypeError):
                pass

        setattr(d.client, hook, hooked)
        happen(d)
        assert len(seen) == times, call
        setattr(d.client, hook, None)
        d.connect(False, is_present)
        count = d.client.inflight + d.client.queued
        ids = set()
        for _ in range(count):
            sent = d.take_publishes()
            assert not ids & {one[2] for one in sent}
            ids |= {one[2] for one in sent}
            d.b2c(*[puback(one[2]) for one in sent])
        assert len(ids) == count and d.client.inflight == d.client.queued == 0


IN_FLIGHT = {"payload": b"in flight"}
KEPT = {"payload": b"kept"}


def old(max_age):
    return {"payload": b"old", "max_age": max_age}


def test_on_drop_when_it_calls_anything_then_gets_a_clear_error_and_all_goes_on():
    for overflow in ("drop_oldest", "latest"):
        for is_connected in (True, False):

            def happen(d, is_connected=is_connected):
                d.publish(b"new")
                assert d.client.queued == 2 and d.client.inflight == is_connected

            assert_each_call_is_survived(
                "on_drop", 1, happen, [KEPT] * (3 if is_connected else 2), max_inflight=1,
                max_mqueue_len=2, overflow=overflow, is_connected=is_connected,
            )  # fmt: skip


def test_on_drop_of_what_is_too_old_when_it_calls_anything_then_all_goes_on():
    def happen(d):
        d.clock.sleep_ms(10000)
        d.client.poll()
        assert d.client.queued >= 1

    assert_each_call_is_survived(
        "on_drop", 2, happen, [IN_FLIGHT, old(10), old(9), KEPT], is_queueing=True,
        max_inflight=1, keepalive=0,
    )  # fmt: skip


def test_on_drop_while_connecting_when_it_calls_anything_then_all_goes_on():
    left = []

    def happen(d):
        d.clock.sleep_ms(10000)
        try:
            d.client.connect(False, stream=d.new_stream(False))
        except MQTTError:
            pass
        left.append(d.client.is_connected)
        assert d.client.inflight + d.client.queued >= 1

    assert_each_call_is_survived(
        "on_drop", 1, happen, [old(10), KEPT], is_queueing=True, is_connected=False
    )
    assert all(left[1:])  # only disconnect() may leave it so


def test_on_drop_of_a_clean_session_when_it_calls_anything_then_all_goes_on():
    def happen(d):
        d.lose()
        d.connect(True)
        d.stream.take()

    # No clean session is there any more.
    messages = [IN_FLIGHT, dict(IN_FLIGHT, qos=2)]
    assert_each_call_is_survived("on_drop", 2, happen, messages, False, is_queueing=True)


def test_on_drop_of_a_clean_session_that_connects_is_followed_by_that_session():
    """31-3.2-CONNACK: what it opened is closed, and nothing goes out before CONNACK."""
    d = Dialogue()
    d.publish(b"in flight")
    d.lose()
    hooked = []

    def on_drop(*_):
        d.connect(False)
        hooked.append(d.stream)
        d.publish(b"new", 2)

    d.client.on_drop = on_drop
    d.connect(True)
    assert hooked[0].is_closed and d.client.is_connected
    d.c2b(publish(b"t", b"new", 2, 2))


def test_on_oversize_and_handler_when_they_call_anything_then_all_goes_on():
    for hook, size in (("on_oversize", 200), ("on_message", 1)):

        def happen(d, size=size):
            d.stream.feed(publish(b"t", b"x" * size, 1, 5))
            d.client.poll()

        assert_each_call_is_survived(hook, 1, happen, [IN_FLIGHT], buffer_size=64)


def test_publish_inside_on_drop_changes_nothing_of_the_message_that_waits_for_room():
    said = properties(message_expiry=60, content_type=b"c")
    for in_hook in ({}, {"max_age": 9, "properties": encode(content_type="hook")}):
        d = Dialogue(is_connected=False, max_mqueue_len=1, overflow="drop_oldest")
        d.publish(b"1")
        d.client.on_drop = lambda packet_id, reason, d=d, in_hook=in_hook: error_of(
            d.publish, b"in hook", **in_hook
        )
        d.publish(b"2", properties=encode(content_type="c"), max_age=60)
        d.client.on_drop = None
        d.connect(False)
        d.c2b(publish(b"t", b"2", 1, 2, properties=said))
