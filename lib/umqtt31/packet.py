"""MQTT packets as bytes: writes their parts into buffers that are given to it.

No state, no I/O, no clock.  A part is written at `pos` and its end returned; whether the
whole fits is asked first, by `size_of()`.  MQTT 3.1 §2 and §3; 3.1.1 is the same but for
the start of CONNECT, see `levels`.
"""

import sys
from struct import pack_into

from micropython import const

_PACKET_CONNECT = const(0x10)

# How bytes are copied in C without allocating: `buf[a:b] = data`, but up to MicroPython
# 1.25 that makes a slice object.  There a fixed format copies, and fills the rest of its
# width with zeros, so that every buffer has as much room behind its end.
HAS_SLICES = sys.implementation.version >= (1, 26)
_WIDTHS = (256, 1024, 4096, 16384, 65536)
_FORMATS = ("256s", "1024s", "4096s", "16384s", "65536s")


_PLAIN = (bytes, bytearray)  # made here, since making a tuple allocates
# A builtin is found only behind a miss in the module and a linear search.
_isinstance = isinstance


def _width(n):
    # The first of _WIDTHS that takes `n` bytes, or the last.
    k = 0
    while k < 4 and _WIDTHS[k] < n:
        k += 1
    return k


def copy(buf, pos, data):
    """Write `data` at `pos` -> its end; `buf` is as `new_buffer()` makes it."""
    end = pos + len(data)
    if HAS_SLICES or len(data) > 65536:  # only in what allocates anyway: umqtt31.simple
        buf[pos:end] = data
    else:
        pack_into(_FORMATS[_width(len(data))], buf, pos, data)
    return end


def new_buffer(size):
    """A bytearray for packets of up to `size` bytes, with the room that copying needs."""
    return bytearray(size if HAS_SLICES else size + _WIDTHS[_width(size)])


def as_bytes(name, value):
    """`value` as bytes in some form: a str is encoded.  Raises TypeError naming `name`."""
    if _isinstance(value, str):
        return value.encode()
    if _isinstance(value, _PLAIN):
        return value
    if not _isinstance(value, memoryview):
        return _copied(name, value)
    return value if getattr(value, "itemsize", 1) == 1 else bytes(value)


def as_text(name, value):
    """`as_bytes()` of what has to be a text: UTF-8 without NUL, or ValueError naming `name`."""
    try:
        value = as_bytes(name, value)
        for char in str(value, "utf-8"):
            # 311-1.5.3-1, 311-1.5.3-2: to MicroPython surrogates and C0 80 are UTF-8.
            if not ord(char) or "\ud7ff" < char < "\ue000":
                break
        else:
            return value
    except UnicodeError:
        pass
    raise ValueError("%s must be UTF-8 without NUL" % name)


def _copied(name, value):
    try:
        return bytes(memoryview(value))  # an array, whatever its elements
    except TypeError:
        raise TypeError("%s must be bytes or str, not %r" % (name, value))


def size_of(length):
    """-> bytes of a packet whose body has `length` bytes."""
    return length + (2 if length < 128 else 3 if length < 16384 else 4)


def end_of(buf):
    """-> bytes of the packet at the start of `buf`."""
    pos = 1
    length = buf[1]
    while buf[pos] > 127:
        pos += 1
        length += (buf[pos] - 1) << 7 * (pos - 1)
    return pos + 1 + length


def write_header(buf, first, length):
    """The fixed header of a packet whose body has `length` bytes."""
    # 31-2.1-LEN: least significant group first.
    buf[0] = first
    pos = 1
    while length > 127:
        buf[pos] = length & 127 | 128
        length >>= 7
        pos += 1
    buf[pos] = length
    return pos + 1


def write_number(buf, pos, number):
    """Two bytes, most significant first: a packet id, a length (31-2.1-ENDIAN)."""
    buf[pos] = number >> 8
    buf[pos + 1] = number & 255
    return pos + 2


def write_string(buf, pos, string):
    """Bytes behind their length in two bytes (31-2.5-UTF8)."""
    return copy(buf, write_number(buf, pos, len(string)), string)


def string(value):
    """-> bytes behind their length, as new ones; see `write_string()`."""
    return len(value).to_bytes(2, "big") + value


def packet(first, body):
    """-> a whole packet, as a new bytearray."""
    buf = bytearray(5)
    n = write_header(buf, first, len(body))
    return buf[:n] + body


def connect_packet(head, flags, keepalive, strings):
    """CONNECT as new bytes: `head` is what its level begins with, `strings` its payload's
    strings in order, as bytes (§3.1)."""
    body = head + bytes((flags, keepalive >> 8, keepalive & 255))
    for one in strings:
        body += string(one)
    return packet(_PACKET_CONNECT, body)
