"""The table of packets, written by a client and read by one.

The bytes are written out by hand.  Every case is read whole, byte by byte, in two pieces and
with trailing bytes.  MQTT 3.1 §2 and §3.
"""

from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import puback, pubcomp, pubrec, pubrel
from umqtt31 import PROTOCOL, TOO_LARGE

LEVELS = (3,)  # one codec for both
BUFFER_BYTES = 16383
BIG = 1000  # cases longer than this are not read byte by byte

# name, bytes, qos, retain, dup, packet id, topic, payload
PUBLISHES = [
    ("qos 0", b"\x30\x05\x00\x01tab", 0, 0, 0, 0, b"t", b"ab"),
    ("qos 0 empty", b"\x30\x03\x00\x01t", 0, 0, 0, 0, b"t", b""),
    ("qos 0 retained", b"\x31\x04\x00\x01tx", 0, 1, 0, 0, b"t", b"x"),
    ("qos 1", b"\x32\x06\x00\x01t\x00\x01x", 1, 0, 0, 1, b"t", b"x"),
    ("qos 1 empty", b"\x32\x05\x00\x01t\x00\x0a", 1, 0, 0, 10, b"t", b""),
    ("qos 1 dup", b"\x3a\x06\x00\x01t\xff\xffx", 1, 0, 1, 65535, b"t", b"x"),
    ("qos 2", b"\x34\x06\x00\x01t\x01\x00x", 2, 0, 0, 256, b"t", b"x"),
    ("qos 2 all", b"\x3d\x07\x00\x02a/\x12\x34x", 2, 1, 1, 0x1234, b"a/", b"x"),
    ("utf-8", b"\x30\x07\x00\x04\xc3\xa9\xc2\xb0\x00", 0, 0, 0, 0, b"\xc3\xa9\xc2\xb0", b"\x00"),
    ("127 bytes", b"\x30\x7f\x00\x01t" + b"x" * 124, 0, 0, 0, 0, b"t", b"x" * 124),
    ("128 bytes", b"\x30\x80\x01\x00\x01t" + b"x" * 125, 0, 0, 0, 0, b"t", b"x" * 125),
    ("id like a length", b"\x32\x85\x02\x00\x01t\x80\x80" + b"y" * 256, 1, 0, 0, 0x8080, b"t",
     b"y" * 256),
    ("16383 bytes", b"\x30\xff\x7f\x00\x01t" + b"x" * 16380, 0, 0, 0, 0, b"t", b"x" * 16380),
    ("16384 bytes", b"\x30\x80\x80\x01\x00\x01t" + b"x" * 16381, 0, 0, 0, 0, b"t", b"x" * 16381),
    ("long topic", b"\x34\x8c\x08\x04\x00" + b"T" * 1024 + b"\x00\x07" + b"p" * 8,
     2, 0, 0, 7, b"T" * 1024, b"p" * 8),
]  # fmt: skip

# name, bytes, first byte, packet id
ACKS = [
    ("PUBACK", b"\x40\x02\x00\x01", 0x40, 1),
    ("PUBREC", b"\x50\x02\x01\x00", 0x50, 256),
    ("PUBREL", b"\x62\x02\xff\xff", 0x62, 65535),
    ("PUBCOMP", b"\x70\x02\x12\x34", 0x70, 0x1234),
]

# Lengths at every boundary of the encoding, and their bytes (MQTT 3.1 §2.1).
LENGTHS = [
    (0, b"\x00"), (1, b"\x01"), (127, b"\x7f"), (128, b"\x80\x01"), (321, b"\xc1\x02"),
    (16383, b"\xff\x7f"), (16384, b"\x80\x80\x01"), (2097151, b"\xff\xff\x7f"),
    (2097152, b"\x80\x80\x80\x01"), (268435455, b"\xff\xff\xff\x7f"),
]  # fmt: skip


def ways(data):
    """-> the pieces in which `data` is fed, one list for each way."""
    yield [data]
    yield [data[:1], None, data[1:]]
    yield [data[:2], None, data[2:]]
    if len(data) < BIG:
        pieces = []
        for i in range(len(data)):
            pieces += [data[i : i + 1], None]
        yield pieces


def feed(d, pieces):
    """The stream gives the pieces, one at a time."""
    for piece in pieces:
        d.stream.feed(piece)
        d.work()


# 311-2.2.2-1.
def test_publish_is_written_as_the_table_says():
    """31-2.1-ENDIAN, 31-2.1-LEN, 31-2.5-UTF8, 31-3.3-IDQOS, 31-3.3-EMPTY, 31-2.6-UNUSED."""
    for name, data, qos, retain, dup, packet_id, topic, payload in PUBLISHES:
        if len(data) > BUFFER_BYTES:
            continue
        # CONNECT has to find room in it, too.
        d = Dialogue(first_id=packet_id, buffer_size=max(len(data), 32), keepalive=0)
        d.client.publish(topic, payload, retain, qos)
        if dup:
            d.stream.take()
            d.lose()
            d.connect(False)
        d.c2b(data)
        if len(data) > 32:
            d = Dialogue(first_id=packet_id, buffer_size=len(data) - 1, keepalive=0)
            assert code_of(d.client.publish, topic, payload, retain, qos) == TOO_LARGE, name
            d.c2b()


def test_publish_is_read_as_the_table_says():
    """31-2.1-ENDIAN, 31-2.1-LEN, 31-2.5-UTF8, 31-3.3-IDQOS, 31-3.3-EMPTY, 31-2.6-UNUSED."""
    for name, data, qos, retain, dup, packet_id, topic, payload in PUBLISHES:
        if len(data) > BUFFER_BYTES:
            continue
        for tail in (b"", b"\x30", b"\x30\x05\x00", b"\xd0"):
            for pieces in ways(data + tail):
                d = Dialogue(buffer_size=BUFFER_BYTES, keepalive=0)
                ids = []
                d.client.on_message = lambda message, d=d, ids=ids: (
                    d.keep(message),
                    ids.append(message.packet_id),
                )
                feed(d, pieces)
                assert d.messages == [(topic, payload, qos, bool(retain), bool(dup))], name
                assert ids == [packet_id], name


# 311-2.2.2-1.
def test_acknowledgements_are_written_and_read_as_the_table_says():
    """31-2.1-ENDIAN, 31-3.6-PUBREL: with QoS bits 01, 31-2.6-UNUSED."""
    answers = {0x40: (puback, 1), 0x50: (pubrec, 2), 0x62: (pubrel, 2), 0x70: (pubcomp, 2)}
    for name, data, first, packet_id in ACKS:
        make, qos = answers[first]
        assert make(packet_id) == data, name
        for pieces in ways(data):
            d = Dialogue(first_id=packet_id, buffer_size=64, keepalive=0)
            assert d.publish(qos=qos) == packet_id
            if first == 0x70:
                d.b2c(pubrec(packet_id))
            d.stream.take()
            feed(d, pieces)
            assert d.client.inflight == (first in (0x50, 0x62)), name
            d.c2b(*{0x50: [pubrel(packet_id)], 0x62: [pubcomp(packet_id)]}.get(first, []))


def test_packets_behind_one_another_are_told_apart():
    """All small PUBLISHes of the table in one stream, in pieces of every size."""
    small = [row[1] for row in PUBLISHES if len(row[1]) < 400]
    data = b"".join(small)
    d = Dialogue(buffer_size=BUFFER_BYTES, keepalive=0)
    d.b2c(data)
    expected = d.take_messages()
    assert len(expected) == len(small)
    for size in list(range(1, 12)) + [63, 64, 65, 66, 130, 200]:
        d = Dialogue(buffer_size=BUFFER_BYTES, keepalive=0)
        for i in range(0, len(data), size):
            feed(d, [data[i : i + size]])
        assert d.messages == expected, size


def test_length_boundaries_are_read():
    """31-2.1-LEN: least significant group first.  What is too large is passed over."""
    for length, encoded in LENGTHS:
        if not 8 <= length <= 2097151:
            continue  # no PUBLISH is that short, and no test reads 268 MB
        d = Dialogue(keepalive=0)
        seen = []
        d.client.on_oversize = lambda topic_len, payload_len, seen=seen: seen.append(
            (topic_len, payload_len)
        )
        d.b2c(b"\x32" + encoded + b"\x00\x01t\x00\x09")
        left = length - 5
        while left:
            d.b2c(bytes(min(left, 65536)))
            left -= min(left, 65536)
        if length > 256:
            assert seen == [(1, length - 5)] and not d.messages, length
        else:
            assert d.messages == [(b"t", bytes(length - 5), 1, False, False)], length
        d.c2b(puback(9))


def test_fifth_length_byte_is_malformed():
    """31-2.1-LEN: whatever it says, and however the bytes arrive."""
    for fifth in (0x00, 0x01, 0x7F, 0x80, 0xFF):
        data = b"\x30\x80\x80\x80\x80" + bytes((fifth,))
        for pieces in ways(data):
            d = Dialogue(keepalive=0)
            for piece in pieces:
                d.stream.feed(piece)
            for _ in pieces:
                try:
                    d.client.poll()
                except OSError as error:
                    assert error.code == PROTOCOL
                    break
            assert not d.client.is_connected
