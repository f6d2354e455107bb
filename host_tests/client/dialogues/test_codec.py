"""The table of packets, written by a session and read through the framing.

Every case is read whole, byte by byte, in two pieces and with trailing bytes.
MQTT 3.1 §2 and §3.
"""

from micropython import heap_lock

from host_tests.client import cases
from host_tests.client.framed import read_all
from umqtt31 import TOO_LARGE
from umqtt31.framing import MALFORMED, Framing
from umqtt31.message import Message
from umqtt31.protocol import Protocol
from umqtt31.ram import RamStore

LEVELS = (3,)  # one codec for both
BUFFER_BYTES = 16400
BIG = 1000  # cases longer than this are not read byte by byte
DUP = 8


def ways(data):
    """-> the pieces in which `data` is fed, one list for each way."""
    yield [data]
    yield [data[:1], data[1:]]
    yield [data[:2], data[2:]]
    if len(data) < BIG:
        yield [data[i : i + 1] for i in range(len(data))]


def check_reading(data, first, body):
    for pieces in ways(data):
        assert read_all(pieces, BUFFER_BYTES) == [(first, body)]
    # Trailing bytes belong to the next packet, which is not whole yet.
    for tail in (b"\x30", b"\x30\x05\x00", b"\xd0"):
        for pieces in ways(data + tail):
            assert read_all(pieces, BUFFER_BYTES) == [(first, body)]


def written(size, flags, topic, payload, packet_id, is_offline):
    """-> the PUBLISH that a protocol with buffers of `size` bytes writes, or its error."""
    protocol = Protocol(RamStore(), 1, 1, size, 3, 1)
    protocol.open(b"dev", 1)
    protocol.mqueue_store_qos0 = True
    protocol.last_id = packet_id - 1
    if not is_offline:
        protocol.connected()
    heap_lock()
    result = protocol.accept(topic, payload, flags & ~DUP)
    if result < 0:
        return result
    protocol.connected()
    if flags & DUP:
        protocol.left = 0
        assert protocol.next()
        protocol.lost()
        protocol.connected()
    assert protocol.next()
    return bytes(protocol.out[protocol.end - protocol.left : protocol.end])


def answered(first, packet_id):
    """-> the answer that a protocol writes."""
    protocol = Protocol(RamStore(), 1, 1, 32, 3, 1)
    protocol.open(b"dev", 1)
    protocol.connected()
    assert not protocol.next()
    protocol._answer(first, packet_id)
    assert protocol.next()
    return bytes(protocol.out[: protocol.left])


def test_publish_is_written_and_read_as_the_table_says():
    """31-2.1-ENDIAN, 31-2.1-LEN, 31-2.5-UTF8, 31-3.3-IDQOS, 31-3.3-EMPTY, 31-2.6-UNUSED."""
    for name, data, qos, retain, dup, packet_id, topic, payload in cases.PUBLISHES:
        flags = qos << 1 | retain | dup << 3
        for is_offline in (False, True):
            size = len(data)
            assert written(size, flags, topic, payload, packet_id, is_offline) == data, name
            too_small = written(size - 1, flags, topic, payload, packet_id, is_offline)
            assert too_small == -TOO_LARGE, name
        start = len(data) - len(payload) - (2 if qos else 0) - len(topic) - 2
        check_reading(data, data[0], data[start:])
        message = Message(bytearray(data[start + 2 :]) + bytearray(8))
        assert message.read(data[0], len(topic), len(data) - start), name
        assert (message.topic, message.payload) == (topic, payload), name
        seen = (message.qos, message.retain, message.dup, message.packet_id)
        assert seen == (qos, bool(retain), bool(dup), packet_id), name


# 311-2.2.2-1.
def test_acknowledgements_are_written_and_read_as_the_table_says():
    """31-2.1-ENDIAN, 31-3.6-PUBREL: with QoS bits 01, 31-2.6-UNUSED."""
    for name, data, first, packet_id in cases.ACKS:
        assert answered(first, packet_id) == data, name
        check_reading(data, first, data[2:])


def test_what_else_a_broker_sends_is_read_as_the_table_says():
    """31-2.1-LEN."""
    for _name, data, first, body in cases.OTHERS:
        check_reading(data, first, body)


def test_packets_behind_one_another_are_told_apart():
    """All small packets of the table in one stream, in pieces of every size."""
    small = [row[1] for row in cases.PUBLISHES + cases.ACKS + cases.OTHERS if len(row[1]) < 400]
    data = b"".join(small)
    expected = read_all([data], BUFFER_BYTES)
    assert len(expected) == len(small)
    for size in list(range(1, 12)) + [63, 64, 65, 66, 130, 200]:
        pieces = [data[i : i + size] for i in range(0, len(data), size)]
        assert read_all(pieces, BUFFER_BYTES) == expected


def take_zeros(framing, header):
    """Feed `header`, then as many zero bytes as are asked for -> what take() says."""
    first = 0
    while not first:
        n = framing.need
        for i in range(min(n, len(header))):
            framing.into[i] = header[i]
        header = header[n:]
        first = framing.take(n)
    return first


def test_length_boundaries_are_read():
    """31-2.1-LEN: 0 to 268435455, least significant group first."""
    for length, encoded in cases.LENGTHS:
        if length < 8:
            continue  # no PUBLISH is that short; see the table above
        framing = Framing(BUFFER_BYTES)
        assert take_zeros(framing, b"\x32" + encoded + b"\x00\x01t\x00\x01") == 0x32
        assert framing.length == length
        assert framing.is_oversize == (length > BUFFER_BYTES)
        if framing.is_oversize:
            seen = framing.field, framing.packet_id, framing.payload_len
            assert seen == (1, 1, length - 5)


def test_fifth_length_byte_is_malformed():
    """31-2.1-LEN: whatever it says, and however the bytes arrive."""
    for fifth in (0x00, 0x01, 0x7F, 0x80, 0xFF):
        data = b"\x30\x80\x80\x80\x80" + bytes((fifth,))
        for pieces in ways(data):
            assert read_all(pieces, BUFFER_BYTES) == [MALFORMED]
