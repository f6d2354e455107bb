"""The table of packets, written by the codec and read through a link.

Every case is read whole, byte by byte, in two pieces and with trailing bytes.
MQTT 3.1 §2 and §3.
"""

from host_tests.client import cases
from host_tests.client.dialogue import code_of
from host_tests.client.scripted import ScriptedStream
from umqtt31 import PROTOCOL, packet
from umqtt31.message import Message
from umqtt31.stream import Link

BUFFER_BYTES = 16400
BIG = 1000  # cases longer than this are not read byte by byte


def read_all(data, count, pieces, size=BUFFER_BYTES):
    """-> [(first byte, body)] of `count` packets in `data`, fed as `pieces`."""
    link = Link(size)
    stream = ScriptedStream()
    link.attach(stream)
    stream.feed(*pieces)
    found = []
    for _ in range(2 * len(data) + 10):
        first = link.receive()
        if first:
            found.append((first, body_of(link)))
    assert len(found) == count, found
    return found


def body_of(link):
    if link.length < 2:
        return b""
    return bytes((link.field >> 8, link.field & 255)) + bytes(link.rx[: link.length - 2])


def ways(data):
    """-> the pieces in which `data` is fed, one list for each way."""
    yield [data]
    yield [data[:1], None, data[1:]]
    yield [data[:2], None, data[2:]] if len(data) > 2 else [data]
    if len(data) < BIG:
        yield [data[i : i + 1] for i in range(len(data))]
        yield [piece for i in range(len(data)) for piece in (data[i : i + 1], None)]


def check_reading(data, first, body):
    for pieces in ways(data):
        assert read_all(data, 1, pieces) == [(first, body)]
    # Trailing bytes belong to the next packet, which is not whole yet.
    for tail in (b"\x30", b"\x30\x05\x00", b"\xd0"):
        for pieces in ways(data + tail):
            assert read_all(data + tail, 1, pieces) == [(first, body)]


def test_publish_is_written_and_read_as_the_table_says():
    """31-2.1-ENDIAN, 31-2.1-LEN, 31-2.5-UTF8, 31-3.3-IDQOS, 31-3.3-EMPTY, 31-2.6-UNUSED."""
    buf = packet.new_buffer(BUFFER_BYTES)
    for name, data, qos, retain, dup, packet_id, topic, payload in cases.PUBLISHES:
        flags = qos << 1 | retain | dup << 3
        n = packet.write_publish(buf, len(data), flags, topic, payload, packet_id)
        assert bytes(buf[:n]) == data, name
        assert packet.write_publish(buf, len(data) - 1, flags, topic, payload, packet_id) == 0
        start = len(data) - len(payload) - (2 if qos else 0) - len(topic) - 2
        check_reading(data, data[0], data[start:])
        message = Message(bytearray(data[start + 2 :]) + bytearray(8))
        assert message.read(data[0], len(topic), len(data) - start), name
        assert (message.topic, message.payload) == (topic, payload), name
        seen = (message.qos, message.retain, message.dup, message.packet_id)
        assert seen == (qos, bool(retain), bool(dup), packet_id), name


def test_acknowledgements_are_written_and_read_as_the_table_says():
    """31-2.1-ENDIAN, 31-3.6-PUBREL: with QoS bits 01, 31-2.6-UNUSED."""
    buf = packet.new_buffer(64)
    for name, data, first, packet_id in cases.ACKS:
        for pos in (0, 4, 28):
            assert packet.write_ack(buf, pos, first, packet_id) == pos + 4
            assert bytes(buf[pos : pos + 4]) == data, name
        check_reading(data, first, data[2:])


def test_what_else_a_broker_sends_is_read_as_the_table_says():
    """31-2.1-LEN."""
    for _name, data, first, body in cases.OTHERS:
        check_reading(data, first, body)


def test_packets_behind_one_another_are_told_apart():
    """All small packets of the table in one stream, in pieces of every size."""
    small = [row[1] for row in cases.PUBLISHES + cases.ACKS + cases.OTHERS if len(row[1]) < 400]
    data = b"".join(small)
    expected = read_all(data, len(small), [data])
    for size in list(range(1, 12)) + [63, 64, 65, 66, 130, 200]:
        pieces = [data[i : i + size] for i in range(0, len(data), size)]
        assert read_all(data, len(small), pieces) == expected


class HollowStream:
    """A header, then as many zero bytes as are asked for, none of them copied."""

    def __init__(self, header):
        self.header = header

    def readinto(self, buf, n):
        if self.header:
            n = min(n, len(self.header))
            for i in range(n):
                buf[i] = self.header[i]
            self.header = self.header[n:]
        return n

    def close(self):
        pass


def test_length_boundaries_are_read():
    """31-2.1-LEN: 0 to 268435455, least significant group first."""
    for length, encoded in cases.LENGTHS:
        if length < 8:
            continue  # no PUBLISH is that short; see the table above
        link = Link(16400)
        link.attach(HollowStream(b"\x32" + encoded + b"\x00\x01t\x00\x01"))
        assert link.receive() == 0x32
        assert link.length == length
        if link.is_oversize:
            assert (link.field, link.packet_id, link.payload_len) == (1, 1, length - 5)


def test_fifth_length_byte_is_malformed():
    """31-2.1-LEN: whatever it says, and however the bytes arrive."""
    for fifth in (0x00, 0x01, 0x7F, 0x80, 0xFF):
        data = b"\x30\x80\x80\x80\x80" + bytes((fifth,))
        for pieces in ways(data):
            assert code_of(read_all, data, 0, pieces) == PROTOCOL
