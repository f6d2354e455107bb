"""The codec against the tests' own packet writer, with generated packets.

The table of cases is in `dialogues/test_codec.py`, which also runs on a board's
interpreter.  MQTT 3.1 §2 and §3.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_tests.client import cases, wire
from host_tests.client.dialogues.test_codec import written
from host_tests.client.framed import Feeder, read_all
from umqtt31 import packet
from umqtt31.framing import MALFORMED
from umqtt31.levels import LEVELS
from umqtt31.message import Message

letters = st.characters(codec="utf-8", exclude_characters="+#\0")
topics = st.text(letters, min_size=1, max_size=40).map(str.encode)
payloads = st.one_of(st.binary(max_size=300), st.integers(0, 40_000).map(lambda n: b"p" * n))
ids = st.integers(1, 65535)


@pytest.mark.parametrize(("length", "encoded"), cases.LENGTHS)
def test_length_boundaries_are_written(length, encoded):
    """31-2.1-LEN: 0 to 268435455, least significant group first."""
    buf = bytearray(5)
    assert packet.write_header(buf, 0x30, length) == 1 + len(encoded)
    assert buf[: 1 + len(encoded)] == b"\x30" + encoded
    assert packet.end_of(buf) == 1 + len(encoded) + length
    if length < 65536:
        assert packet.size_of(length) == 1 + len(encoded) + length


@given(st.integers(3, 20_000), st.booleans())
def test_any_length_is_written_as_the_specification_encodes_it(length, is_offline):
    """31-2.1-LEN."""
    payload = b"x" * (length - 3)
    expected = wire.publish(b"t", payload)
    assert written(len(expected), 0, b"t", payload, 1, is_offline) == expected


@given(
    topics,
    payloads,
    st.integers(0, 2),
    ids,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_any_publish_is_written_and_read_back(
    topic, payload, qos, packet_id, dup, retain, is_offline, data
):
    """31-2.5-UTF8, 31-3.3-IDQOS, 31-2.1-ENDIAN."""
    dup = dup and qos > 0
    flags = qos << 1 | dup << 3 | retain
    expected = wire.publish(topic, payload, qos, packet_id, dup, retain)
    assert written(len(expected), flags, topic, payload, packet_id, is_offline) == expected

    pieces = [1, 2, 3, 64, 65, 1000] if len(expected) < 1000 else [64, 65, 1000]
    size = data.draw(st.sampled_from(pieces))
    feeder = Feeder(len(expected))
    for pos in range(0, len(expected), size):
        feeder.feed(expected[pos : pos + size])
    assert [first for first, _ in feeder.found] == [expected[0]]
    framing = feeder.framing
    message = Message(framing.rx)
    assert message.read(expected[0], framing.field, framing.length)
    assert message.topic == topic and message.payload == payload
    assert message.packet_id == (packet_id if qos else 0)
    assert (message.qos, message.dup, message.retain) == (qos, dup, retain)
    assert feeder.feed(wire.pingresp())[1:] == [(0xD0, b"")]


PACKETS = st.one_of(
    st.tuples(topics, st.binary(max_size=200), st.integers(0, 2), ids).map(
        lambda fields: wire.publish(*fields)
    ),
    ids.map(wire.puback),
    st.sampled_from([wire.pingresp(), wire.connack(), b"\x90\x05\x00\x07\x00\x01\x02"]),
)


@given(st.lists(PACKETS, max_size=8), st.data())
def test_any_packets_in_any_pieces_are_the_same_packets(packets, data):
    """In a buffer too small for some of them, which are passed over."""
    stream = b"".join(packets)
    whole = read_all([stream], 40)
    assert len(whole) == len(packets) and MALFORMED not in whole
    pieces = []
    while stream:
        n = data.draw(st.integers(1, len(stream)))
        pieces.append(stream[:n])
        stream = stream[n:]
    assert read_all(pieces, 40) == whole


@given(
    st.sampled_from([3, 4]),
    st.integers(0, 255),
    st.integers(0, 65535),
    st.lists(st.binary(max_size=300), max_size=5),
)
def test_any_connect_is_written_as_the_specification_says(level, flags, keepalive, fields):
    """31-2.2-PROTO, 31-3.1-ORDER, 31-2.5-UTF8."""
    expected = wire.connect(b"id", flags, keepalive, *fields, level=level)
    assert packet.connect_packet(LEVELS[level][0], flags, keepalive, [b"id", *fields]) == expected
