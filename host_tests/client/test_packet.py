"""The codec against the tests' own packet writer, with generated packets.

The table of cases is in `dialogues/test_codec.py`, which also runs on a board's
interpreter.  MQTT 3.1 §2 and §3.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_tests.client import cases, wire
from host_tests.client.scripted import ScriptedStream
from umqtt31 import packet
from umqtt31.message import Message
from umqtt31.stream import Link

topics = st.text(min_size=1, max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass"))
payloads = st.one_of(st.binary(max_size=300), st.integers(0, 40_000).map(lambda n: b"p" * n))
ids = st.integers(1, 65535)


class Hollow(bytes):
    """Says that it is long, and is empty."""

    def __len__(self):
        return self.says

    def __new__(cls, says):
        self = super().__new__(cls)
        self.says = says
        return self


@pytest.mark.parametrize(("length", "encoded"), cases.LENGTHS)
def test_length_boundaries_are_written(length, encoded):
    """31-2.1-LEN: 0 to 268435455, least significant group first."""
    if length < 3:
        assert wire.packet(0xD0, bytes(length))[1:2] == encoded
        return
    buf = packet.new_buffer(1000)
    packet.write_publish(buf, length + 5, 0, b"t", Hollow(length - 3), 0)
    assert buf[: 1 + len(encoded)] == b"\x30" + encoded


@given(st.integers(3, 20_000))
def test_any_length_is_written_as_the_specification_encodes_it(length):
    """31-2.1-LEN."""
    buf = packet.new_buffer(length + 5)
    payload = b"x" * (length - 3)
    n = packet.write_publish(buf, length + 5, 0, b"t", payload, 0)
    assert buf[:n] == wire.publish(b"t", payload)


@given(topics, payloads, st.integers(0, 2), ids, st.booleans(), st.booleans(), st.data())
def test_any_publish_is_written_and_read_back(topic, payload, qos, packet_id, dup, retain, data):
    """31-2.5-UTF8, 31-3.3-IDQOS, 31-2.1-ENDIAN."""
    flags = qos << 1 | dup << 3 | retain
    expected = wire.publish(topic, payload, qos, packet_id, dup, retain)
    buf = packet.new_buffer(len(expected))
    n = packet.write_publish(buf, len(expected), flags, topic, payload, packet_id)
    assert buf[:n] == expected

    link = Link(len(expected))
    stream = ScriptedStream(read_most=data.draw(st.sampled_from([0, 1, 2, 3, 64, 65, 1000])))
    if len(expected) > 1000 and 0 < stream.read_most < 64:
        stream.read_most = 64
    link.attach(stream)
    stream.feed(expected + wire.PINGRESP)
    assert link.receive() == expected[0]
    message = Message(link.rx)
    assert message.read(expected[0], link.field, link.length)
    assert message.topic == topic and message.payload == payload
    assert message.packet_id == (packet_id if qos else 0)
    assert (message.qos, message.dup, message.retain) == (qos, dup, retain)
    assert link.receive() == 0xD0


@given(st.integers(0, 255), st.integers(0, 65535), st.lists(st.binary(max_size=300), max_size=5))
def test_any_connect_is_written_as_the_specification_says(flags, keepalive, fields):
    """31-2.2-PROTO, 31-3.1-ORDER, 31-2.5-UTF8."""
    expected = wire.connect(b"id", flags, keepalive, *fields)
    buf = packet.new_buffer(len(expected))
    n = packet.write_connect(buf, len(expected), 3, flags, keepalive, [b"id", *fields])
    assert buf[:n] == expected
    assert packet.write_connect(buf, n - 1, 3, flags, keepalive, [b"id", *fields]) == 0
