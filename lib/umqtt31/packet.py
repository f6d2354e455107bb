"""MQTT packets as bytes: writes and reads them in buffers that are given to it.

No state, no I/O, no clock, nothing of ours imported.  Writers return the number
of bytes written from the start of the buffer, or 0 when the packet is larger
than `size`; readers return False for a malformed packet.  MQTT 3.1 §2 and §3;
the protocol level enters only through `PROTOCOLS`.
"""

import struct
import sys

CONNECT = 0x10
CONNACK = 0x20
PUBLISH = 0x30
PUBACK = 0x40
PUBREC = 0x50
PUBREL = 0x62  # 31-3.6-PUBREL: carries the QoS bits 01
PUBCOMP = 0x70
SUBSCRIBE = 0x82
SUBACK = 0x90
UNSUBSCRIBE = 0xA2
UNSUBACK = 0xB0
PINGREQ = 0xC0
PINGRESP = 0xD0
DISCONNECT = 0xE0

DUP = 0x08

# The start of CONNECT's variable header, by protocol level (31-2.2-PROTO).
PROTOCOLS = {3: b"\x00\x06MQIsdp\x03"}

# One fixed format copies up to this many bytes and fills the rest with zeros, so
# every buffer has as much room behind its end.  It is the one copy in C that
# allocates nothing on all versions, and it writes the numbers before it as well.
SLACK = 256

if sys.implementation.name == "cpython":

    def put(fmt, buf, pos, *values):
        values = [v if isinstance(v, int) else bytes(v) for v in values]
        struct.pack_into(fmt, buf, pos, *values)

else:
    put = struct.pack_into

# A builtin is found only behind a miss in the module and a linear search.
_len = len


def _copy_long(buf, pos, data):
    # More than SLACK bytes.
    try:
        buf[pos : pos + len(data)] = data
    except MemoryError:
        # MicroPython up to 1.25 makes a slice object, which a locked heap refuses.
        for byte in data:
            buf[pos] = byte
            pos += 1


def new_buffer(size):
    """A bytearray for packets of up to `size` bytes, with the room `copy` needs."""
    return bytearray(size + SLACK)


def _write_header(buf, size, first, length):
    # Fixed header -> its end, or 0 when the packet would not fit.
    # 31-2.1-LEN: least significant group first.
    if length + (2 if length < 128 else 3 if length < 16384 else 4) > size:
        return 0
    buf[0] = first
    pos = 1
    while length > 127:
        buf[pos] = length & 127 | 128
        length >>= 7
        pos += 1
    buf[pos] = length
    return pos + 1


def _write_string(buf, pos, data):
    # 31-2.5-UTF8: the length in bytes, two bytes, most significant first.
    n = len(data)
    put(">H256s", buf, pos, n, data)
    if n > SLACK:
        _copy_long(buf, pos + 2, data)
    return pos + 2 + n


def write_connect(buf, size, level, flags, keepalive, fields):
    """CONNECT; `fields` are its payload's strings in order, as bytes (§3.1)."""
    start = PROTOCOLS[level]
    length = len(start) + 3
    for field in fields:
        length += 2 + len(field)
    pos = _write_header(buf, size, CONNECT, length)
    if not pos:
        return 0
    put("256s", buf, pos, start)
    pos += len(start)
    put(">BH", buf, pos, flags, keepalive)
    pos += 3
    for field in fields:
        pos = _write_string(buf, pos, field)
    return pos


def write_publish(buf, size, flags, topic, payload, packet_id):
    """PUBLISH; `flags` are the low bits of its first byte (§3.3)."""
    n = _len(topic)
    m = _len(payload)
    length = n + m + (4 if flags & 6 else 2)
    if length < 128 and length + 2 <= size and n <= SLACK:  # the common case, at once
        put(">BBH256s", buf, 0, PUBLISH | flags, length, n, topic)
        pos = 4 + n
    else:
        pos = _write_header(buf, size, PUBLISH | flags, length)
        if not pos:
            return 0
        pos = _write_string(buf, pos, topic)
    if flags & 6:  # 31-3.3-IDQOS
        put(">H256s", buf, pos, packet_id, payload)
        pos += 2
    else:
        put("256s", buf, pos, payload)
    if m > SLACK:
        _copy_long(buf, pos, payload)
    return pos + m


def write_ack(buf, pos, first, packet_id):
    """A packet that is only a packet id, at `pos` -> its end (§3.4 to §3.7)."""
    put(">BBH", buf, pos, first, 2, packet_id)
    return pos + 4


def write_filters(buf, size, first, entries):
    """SUBSCRIBE of entries (filter, QoS) or UNSUBSCRIBE of (filter,); id 0."""
    length = 2
    for entry in entries:
        length += len(entry[0]) + 1 + len(entry)
    pos = _write_header(buf, size, first, length)
    if pos:
        pos += 2
        for entry in entries:
            pos = _write_string(buf, pos, entry[0])
            if len(entry) > 1:
                buf[pos] = entry[1]
                pos += 1
    return pos


def read_id(buf, pos=0):
    """The packet id at `pos`."""
    return buf[pos] << 8 | buf[pos + 1]


def body_start(buf):
    """Where the body of a whole packet begins."""
    pos = 1
    while buf[pos] & 128:
        pos += 1
    return pos + 1


def has_topic(buf, topic):
    """Is `topic` the topic of the whole PUBLISH in `buf`?"""
    pos = body_start(buf)
    if read_id(buf, pos) != len(topic):
        return False
    for byte in topic:
        if byte != buf[pos + 2]:
            return False
        pos += 1
    return True
