"""The table of packets, written by a client and read by one.

Every case is read whole, byte by byte, in two pieces and with trailing bytes.
MQTT 3.1 §2 and §3.
"""

from host_tests.client import cases
from host_tests.client.dialogue import Dialogue, code_of
from host_tests.client.wire import puback, pubcomp, pubrec, pubrel
from host_tests.standin.store import KeepingStore
from umqtt31 import PROTOCOL, TOO_LARGE

LEVELS = (3,)  # one codec for both
BUFFER_BYTES = 16383
BIG = 1000  # cases longer than this are not read byte by byte


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


def client_with_id(packet_id, size, **options):
    """-> a dialogue whose next message has this id."""
    store = KeepingStore()
    store.last_id = packet_id - 1
    return Dialogue(store=store, buffer_size=size, keepalive=0, **options)


# 311-2.2.2-1.
def test_publish_is_written_as_the_table_says():
    """31-2.1-ENDIAN, 31-2.1-LEN, 31-2.5-UTF8, 31-3.3-IDQOS, 31-3.3-EMPTY, 31-2.6-UNUSED."""
    for name, data, qos, retain, dup, packet_id, topic, payload in cases.PUBLISHES:
        if len(data) > BUFFER_BYTES:
            continue
        # CONNECT has to find room in it, too.
        d = client_with_id(packet_id, max(len(data), 32))
        d.client.publish(topic, payload, retain, qos)
        if dup:
            d.stream.take()
            d.lose()
            d.connect(False)
        d.c2b(data)
        if len(data) > 32:
            d = client_with_id(packet_id, len(data) - 1)
            assert code_of(d.client.publish, topic, payload, retain, qos) == TOO_LARGE, name
            d.c2b()


def test_publish_is_read_as_the_table_says():
    """31-2.1-ENDIAN, 31-2.1-LEN, 31-2.5-UTF8, 31-3.3-IDQOS, 31-3.3-EMPTY, 31-2.6-UNUSED."""
    for name, data, qos, retain, dup, packet_id, topic, payload in cases.PUBLISHES:
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
    for name, data, first, packet_id in cases.ACKS:
        make, qos = answers[first]
        assert make(packet_id) == data, name
        for pieces in ways(data):
            d = client_with_id(packet_id, 64)
            assert d.publish(qos=qos) == packet_id
            if first == 0x70:
                d.b2c(pubrec(packet_id))
            d.stream.take()
            feed(d, pieces)
            assert d.client.inflight == (first in (0x50, 0x62)), name
            d.c2b(*{0x50: [pubrel(packet_id)], 0x62: [pubcomp(packet_id)]}.get(first, []))


def test_packets_behind_one_another_are_told_apart():
    """All small PUBLISHes of the table in one stream, in pieces of every size."""
    small = [row[1] for row in cases.PUBLISHES if len(row[1]) < 400]
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
    for length, encoded in cases.LENGTHS:
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
