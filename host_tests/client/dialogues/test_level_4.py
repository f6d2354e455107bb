"""What MQTT 3.1.1 changes on the wire.  MQTT 3.1.1 §3.1, §3.2, §3.9, §4.1, §4.4."""

from host_tests.client.dialogue import Dialogue, error_of
from host_tests.client.wire import (
    connack,
    connect,
    publish,
    read_id,
    suback,
    subscribe,
)
from host_tests.standin.stream import ScriptedStream
from umqtt31 import MQTTClient, MQTTError

LEVELS = (4,)


def connect_as(client_id, clean, packet):
    """One client in little memory connects -> is this just the packet that it sends?"""
    options = {"buffer_size": len(packet) + 8, "max_inflight": 1, "max_mqueue_len": 0}
    client = MQTTClient(client_id, "broker", level=4, **options)
    stream = ScriptedStream()
    stream.answer(packet, connack())
    client.connect(clean, stream=stream)
    return stream.has_answered()


# 311-3.1.0-1, 311-3.1.2-11.
def test_c2b_connect_carries_mqtt_version_4():
    d = Dialogue(is_connected=False, keepalive=300)
    stream = ScriptedStream()
    stream.answer(b"\x10\x0f\x00\x04MQTT\x04\x02\x01\x2c\x00\x03dev", b"\x20\x02\x00\x00")
    assert d.client.connect(stream=stream) is False
    assert stream.has_answered() and stream.take() == b"" and d.client.is_connected


# 311-3.1.2-9, 311-3.1.3-1.
def test_c2b_connect_with_everything_keeps_the_payload_order():
    d = Dialogue(is_connected=False, user="zoë", password="s")
    d.client.set_last_will("w/t", "gone", retain=True, qos=1)
    stream = ScriptedStream()
    stream.answer(
        b"\x10\x23\x00\x04MQTT\x04\xec\x00\x3c"
        b"\x00\x03dev\x00\x03w/t\x00\x04gone\x00\x04zo\xc3\xab\x00\x01s",
        connack(),
    )
    d.client.connect(False, stream=stream)
    assert stream.has_answered()


def test_client_id_of_any_length_is_taken():
    for client_id in (b"x", b"x" * 23, b"x" * 24, "ë" * 100, b"x" * 16000):
        encoded = client_id.encode() if isinstance(client_id, str) else client_id
        assert connect_as(client_id, False, connect(encoded, 0, 60, level=4))
    assert isinstance(error_of(MQTTClient, b"x" * 65536, "broker", level=4), ValueError)


def test_client_id_at_level_3_has_1_to_23_characters_still():
    for bad in (b"", b"x" * 24):
        assert isinstance(error_of(MQTTClient, bad, "broker", level=3), ValueError)


# 311-3.1.3-7.
def test_client_id_that_is_empty_is_for_clean_sessions_only():
    for empty in (b"", ""):
        assert connect_as(empty, True, connect(b"", 2, 60, level=4))
        client = MQTTClient(empty, "broker", level=4)
        stream = ScriptedStream()
        assert isinstance(error_of(client.connect, False, stream=stream), ValueError)
        assert stream.take() == b"" and not client.is_connected


def test_b2c_refused_filter_between_others_leaves_the_others():
    """311-3.9.3-1: where the session goes on nothing is asked again, else what was granted."""
    d = Dialogue()
    pairs = [(b"a", 1), (b"secret", 1), (b"c", 0)]
    error = error_of(d.subscribe, subscribe(1, *pairs), suback(1, 1, 0x80, 0), pairs)
    assert isinstance(error, MQTTError) and "secret" in str(error)
    d.stream.take()
    d.connect(False)
    d.c2b()
    d.connect(False, is_present=False)
    first = read_id(d.stream.sent)
    d.c2b(subscribe(first, (b"a", 1), (b"c", 0)))


def test_c2b_session_after_a_clean_one_is_another_whatever_the_broker_says():
    """A CONNECT that was under way for long made it: it knows no filter of this client's."""
    d = Dialogue(clean=True)
    d.subscribe(subscribe(1, (b"a", 1)), suback(1, 1), b"a", 1)
    d.publish(b"x", 1)
    d.take_packets()
    d.lose()
    stream = d.new_stream(False, True)
    assert d.client.connect(False, stream=stream) is False
    d.stream = stream
    d.work()
    d.c2b(subscribe(3, (b"a", 1)), publish(b"t", b"x", 1, 2))
