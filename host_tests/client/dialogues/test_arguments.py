"""Wrong arguments that scripts cannot give; the others are in `arguments.txt`."""

from host_tests.client import wire
from host_tests.client.dialogue import Dialogue, error_of, refuses
from host_tests.standin.stream import ScriptedStream
from umqtt31 import Journal, MQTTClient
from umqtt31.v5 import MQTTClient as MQTTClient5

LEVELS = (3,)  # at all levels the same


def test_level_that_there_is_not_or_in_another_class_is_refused():
    for make, level, kind, words in (
        (MQTTClient, 2, ValueError, "level"),
        (MQTTClient, 6, ValueError, "level"),
        (MQTTClient, 5, ValueError, "umqtt31.v5"),
        (MQTTClient5, 4, ValueError, "MQTTClient from umqtt31"),
        (MQTTClient, None, TypeError, "level"),
        (MQTTClient, "4", TypeError, "level"),
        (MQTTClient, 4.5, TypeError, "level"),
        (MQTTClient, [4], TypeError, "level"),
    ):
        refuses(kind, words, make, "dev", "broker", level=level)


def test_journal_over_what_is_no_block_device_is_refused_by_name():
    for bad in (None, "journal.bin", 16):
        refuses(TypeError, "block_device", MQTTClient, "dev", "broker", store=Journal(bad))


def test_server_that_is_none_is_refused():
    """It is not needed where a stream is given."""
    for bad in (None, 5, ["broker"], "", b""):
        client = MQTTClient("dev", bad)
        refuses(TypeError, "server", client.connect)
        stream = ScriptedStream()
        stream.answer(wire.connect(b"dev"), wire.connack())
        client.connect(stream=stream)
        assert client.is_connected


def test_wrong_topic_is_told_in_a_text_of_bounded_length():
    """A small heap has no room for a long one twice more."""
    d = Dialogue(is_connected=False)
    for call in (d.client.publish, d.client.set_last_will):
        error = error_of(call, b"a/b#c" + bytes(60000), b"x")
        assert isinstance(error, ValueError)
        assert "a/b#c" in str(error) and len(str(error)) < 400, len(str(error))
