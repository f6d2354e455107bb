"""MQTT packets as bytes: writes them into buffers that are given to it.

No state, no I/O, no clock.  Writers return the number of bytes written from the
start of the buffer, or 0 when the packet is larger than `size`.  MQTT 3.1 §2 and
§3; the protocol level enters only through `PROTOCOLS`.
"""

import sys
from struct import pack_into

from micropython import const

if sys.implementation.name == "cpython":
    from .packettypes import *  # noqa: F403 - the packet types by name, for host tools

_PACKET_CONNECT = const(0x10)
_PACKET_PUBLISH = const(0x30)

# The start of CONNECT's variable header, by protocol level (31-2.2-PROTO).
PROTOCOLS = {3: b"\x00\x06MQIsdp\x03"}

# How bytes are copied in C without allocating: `buf[a:b] = data`, but up to MicroPython
# 1.25 that makes a slice object.  There a fixed format copies up to `_SLACK` bytes and
# fills the rest with zeros, so that every buffer has as much room behind its end.
HAS_SLICES = sys.implementation.version >= (1, 26)
_SLACK = const(256)


def _copy(buf, pos, data):
    if HAS_SLICES:
        buf[pos : pos + len(data)] = data
    elif len(data) <= _SLACK:
        pack_into("256s", buf, pos, data)
    else:
        try:
            buf[pos : pos + len(data)] = data
        except MemoryError:  # the slice object, with the heap locked
            for byte in data:
                buf[pos] = byte
                pos += 1


def new_buffer(size):
    """A bytearray for packets of up to `size` bytes, with the room that copying needs."""
    return bytearray(size if HAS_SLICES else size + _SLACK)


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


def write_connect(buf, size, level, flags, keepalive, strings):
    """CONNECT; `strings` are its payload's strings in order, as bytes (§3.1)."""
    head = PROTOCOLS[level] + bytes((flags, keepalive >> 8, keepalive & 255))
    return write_strings(buf, size, _PACKET_CONNECT, head, strings)


def write_strings(buf, size, first, head, strings, qos=b""):
    """CONNECT, SUBSCRIBE or UNSUBSCRIBE: `head`, then the strings, as bytes; `qos`: one
    for each filter of SUBSCRIBE."""
    length = len(head) + len(qos)
    for string in strings:
        length += 2 + len(string)
    pos = _write_header(buf, size, first, length)
    if pos:
        _copy(buf, pos, head)
        pos += len(head)
        for k in range(len(strings)):
            string = strings[k]
            n = len(string)
            # 31-2.5-UTF8: the length in bytes, two bytes, most significant first.
            buf[pos] = n >> 8
            buf[pos + 1] = n & 255
            _copy(buf, pos + 2, string)
            pos += 2 + n
            if qos:
                buf[pos] = qos[k]
                pos += 1
    return pos


def write_publish(buf, size, flags, topic, payload, packet_id):
    """PUBLISH; `flags` are the low bits of its first byte (§3.3)."""
    n = len(topic)
    m = len(payload)
    has_id = flags & 6
    pos = _write_header(buf, size, _PACKET_PUBLISH | flags, n + m + (4 if has_id else 2))
    if not pos:
        return 0
    buf[pos] = n >> 8
    buf[pos + 1] = n & 255
    _copy(buf, pos + 2, topic)
    pos += 2 + n
    if has_id:  # 31-3.3-IDQOS
        buf[pos] = packet_id >> 8
        buf[pos + 1] = packet_id & 255
        pos += 2
    _copy(buf, pos, payload)
    return pos + m


def write_ack(buf, pos, first, packet_id):
    """A packet that is only a packet id, at `pos` -> its end (§3.4 to §3.7)."""
    buf[pos] = first
    buf[pos + 1] = 2
    buf[pos + 2] = packet_id >> 8
    buf[pos + 3] = packet_id & 255
    return pos + 4
