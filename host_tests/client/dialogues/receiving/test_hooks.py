"""The program's calls inside on_drop, on_oversize and the handler: a clear error or none.

Only MQTTError, ValueError and TypeError may come out, and all goes on afterwards.
"""

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.wire import properties, puback, publish
from umqtt31 import MQTTError
from umqtt31.properties import encode

LEVEL_5 = ("test_publish_inside_on_drop_changes_nothing_of_the_message_that_waits_for_room",)

CALLS = (
    ("disconnect", lambda client: client.disconnect()),
    ("connect", lambda client: client.connect()),
    ("reconnect", lambda client: client.reconnect()),
    ("poll", lambda client: client.poll()),
    ("wait_msg", lambda client: client.wait_msg()),
    ("flush", lambda client: client.flush(1000)),
    ("ping", lambda client: client.ping()),
    ("subscribe", lambda client: client.subscribe(b"a")),
    ("unsubscribe", lambda client: client.unsubscribe(b"a")),
    ("publish 0", lambda client: client.publish(b"t", b"in hook")),
    ("publish 1", lambda client: client.publish(b"t", b"in hook", qos=1)),
    ("publish None", lambda client: client.publish(b"t", b"in hook", qos=1, max_age=None)),
    ("publish old", lambda client: client.publish(b"t", b"in hook", qos=1, max_age=5)),
    ("next_due_ms", lambda client: client.next_due_ms()),
    ("stats", lambda client: client.stats.dropped + client.inflight + client.queued),
)


def calling(d, call, seen):
    """-> a hook that makes one call and notes what became of it."""

    def hook(*args):
        try:
            call(d.client)
            seen.append(None)
        except (MQTTError, ValueError, TypeError) as error:
            seen.append(error)

    return hook


def assert_goes_on(d, is_present=None):
    """All that is still there arrives on a new connection, each message once."""
    for hook in ("on_drop", "on_oversize", "on_message"):
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


def test_on_drop_when_it_calls_anything_then_gets_a_clear_error_and_all_goes_on():
    for overflow in ("drop_oldest", "latest"):
        for name, call in CALLS:
            for is_connected in (True, False):
                d = Dialogue(
                    max_inflight=1, max_mqueue_len=2, overflow=overflow, is_connected=is_connected
                )
                for number in range(3 if is_connected else 2):
                    d.publish(b"%d" % number)
                d.stream and d.stream.take()
                seen = []
                d.client.on_drop = calling(d, call, seen)
                d.publish(b"new")
                assert len(seen) == 1, name
                assert d.client.queued == 2 and d.client.inflight == is_connected, name
                assert_goes_on(d)


def test_on_drop_of_what_is_too_old_when_it_calls_anything_then_all_goes_on():
    for name, call in CALLS:
        d = Dialogue(is_queueing=True, max_inflight=1, keepalive=0)
        d.publish(b"in flight")
        d.publish(b"old", max_age=10)
        d.publish(b"older", max_age=9)
        d.publish(b"kept")
        d.stream.take()
        seen = []
        d.client.on_drop = calling(d, call, seen)
        d.clock.sleep_ms(10000)
        d.client.poll()
        assert len(seen) == 2, name
        assert d.client.queued >= 1, name
        assert_goes_on(d)


def test_on_drop_while_connecting_when_it_calls_anything_then_all_goes_on():
    for name, call in CALLS:
        d = Dialogue(is_queueing=True, is_connected=False)
        d.publish(b"old", max_age=10)
        d.publish(b"kept")
        seen = []
        d.client.on_drop = calling(d, call, seen)
        d.clock.sleep_ms(10000)
        stream = d.new_stream(False)
        try:
            d.client.connect(False, stream=stream)
            assert d.client.is_connected or name == "disconnect", name
        except MQTTError as error:
            assert name == "disconnect", (name, error)
        assert len(seen) == 1, name
        assert d.client.inflight + d.client.queued >= 1
        assert_goes_on(d)


def test_on_drop_of_a_clean_session_when_it_calls_anything_then_all_goes_on():
    for name, call in CALLS:
        d = Dialogue(is_queueing=True)
        d.publish(b"in flight")
        d.publish(b"in flight, too", 2)
        d.lose()
        seen = []
        d.client.on_drop = calling(d, call, seen)
        d.connect(True)
        assert len(seen) == 2, name
        d.stream.take()
        assert_goes_on(d, is_present=False)  # no clean session is there any more


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


def test_on_oversize_when_it_calls_anything_then_all_goes_on():
    for name, call in CALLS:
        d = Dialogue(buffer_size=64)
        d.publish(b"in flight")
        d.stream.take()
        seen = []
        d.client.on_oversize = calling(d, call, seen)
        d.stream.feed(publish(b"t", b"x" * 200, 1, 5))
        d.client.poll()
        assert len(seen) == 1, name
        assert_goes_on(d)


def test_handler_when_it_calls_anything_then_all_goes_on():
    for name, call in CALLS:
        d = Dialogue()
        d.publish(b"in flight")
        d.stream.take()
        seen = []
        d.client.on_message = calling(d, call, seen)
        d.stream.feed(publish(b"t", b"x", 1, 5))
        d.client.poll()
        assert len(seen) == 1, name
        assert_goes_on(d)


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
