"""Wrong arguments: ValueError or TypeError before anything is sent or stored."""

from host_tests.client import wire
from host_tests.client.dialogue import Dialogue, error_of, refuses
from host_tests.client.wire import connack
from host_tests.standin.stream import ScriptedStream
from umqtt31 import Journal, MQTTClient

# The bytes of MQTT 3.1 itself.
LEVEL_3 = ("test_server_that_is_none_is_refused",)

BAD_OPTIONS = {
    "level": (2, 6, None), "buffer_size": (15, 65536), "max_inflight": (0, 65536),
    "max_mqueue_len": (-1, 65535), "max_awaiting_rel": (0,), "retry_interval": (-1, 3601),
    "await_rel_timeout": (0,), "connect_timeout": (0,), "overflow": ("drop", None),
    "keepalive": (65536,), "port": (-1, 65536),
}  # fmt: skip
NUMBERS = {name for name in BAD_OPTIONS if name != "overflow"}


def test_options_out_of_range_are_refused_by_name():
    for name, values in BAD_OPTIONS.items():
        for value in values:
            error = error_of(MQTTClient, "dev", "broker", **{name: value})
            assert isinstance(error, (ValueError, TypeError)), (name, value)
            assert isinstance(error, TypeError) or name in str(error), (name, value, error)


def test_options_of_another_type_are_refused_by_name():
    for name in sorted(NUMBERS):
        for bad in ("4", 4.5, [4]):
            refuses(TypeError, name, MQTTClient, "dev", "broker", **{name: bad})


def test_block_device_in_place_of_a_journal_is_refused_by_name():
    for bad in (object(), "journal.bin", 16, False, 0, "", [], {}):
        refuses(TypeError, "store", MQTTClient, "dev", "broker", store=bad)


def test_journal_over_what_is_no_block_device_is_refused_by_name():
    for bad in (None, "journal.bin", 16):
        refuses(TypeError, "block_device", MQTTClient, "dev", "broker", store=Journal(bad))


def test_client_id_of_another_type_is_refused():
    for bad in (None, 5, ["dev"]):
        assert isinstance(error_of(MQTTClient, bad, "broker"), (TypeError, ValueError))


def test_server_that_is_none_is_refused():
    """It is not needed where a stream is given."""
    for bad in (None, 5, ["broker"], "", b""):
        client = MQTTClient("dev", bad)
        refuses(TypeError, "server", client.connect)
        stream = ScriptedStream()
        stream.answer(wire.connect(b"dev"), wire.connack())
        client.connect(stream=stream)
        assert client.is_connected


def test_qos_that_is_not_0_to_2_is_refused_by_name_and_nothing_changes():
    d = Dialogue()
    for bad, kind in ((3, ValueError), (-1, ValueError), ("1", TypeError), (1.5, TypeError)):
        for call in (d.client.publish, d.client.set_last_will):
            refuses(kind, "qos", call, b"t", b"x", qos=bad)
    for bad in (None, "", (), 1.0):
        for call in (d.client.publish, d.client.set_last_will):
            assert isinstance(error_of(call, b"t", b"x", qos=bad), TypeError), bad
    d.c2b()
    assert d.client.inflight + d.client.queued == 0


def test_wrong_topic_is_told_in_a_text_of_bounded_length():
    """A small heap has no room for a long one twice more."""
    d = Dialogue(is_connected=False)
    for call in (d.client.publish, d.client.set_last_will):
        error = error_of(call, b"a/b#c" + bytes(60000), b"x")
        assert isinstance(error, ValueError)
        assert "a/b#c" in str(error) and len(str(error)) < 400, len(str(error))


def test_list_of_filters_without_their_qos_is_refused_by_name():
    d = Dialogue()
    for bad in (["a"], ["abc"], [("a",)], [("a", 0, 1)], [None], [("a", 0), "b"], []):
        error = error_of(d.client.subscribe, bad)
        assert isinstance(error, (TypeError, ValueError)), (bad, error)
        assert "topic" in str(error), (bad, error)
    for bad in ("1", None, 1.5):
        refuses(TypeError, "qos", d.client.subscribe, "a", bad)
    d.c2b()


def test_stream_that_is_none_is_refused_by_name_and_the_next_one_taken():
    d = Dialogue(is_connected=False)
    for bad in (object(), 16, lambda: None, lambda: "stream"):
        refuses(TypeError, "stream", d.client.connect, stream=bad)
        assert not d.client.is_connected
    stream = ScriptedStream()
    stream.feed(connack(0))
    d.client.connect(stream=stream)
    assert d.client.is_connected


def test_stats_can_be_read_by_name_and_by_attribute():
    d = Dialogue()
    d.publish()
    assert d.client.stats["sent"] == d.client.stats.sent == 1
