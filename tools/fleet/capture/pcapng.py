"""The pcapng file format: sections, interfaces, packet blocks.

Blocks of other kinds are passed over.  Never looks into a frame.  Format: IETF
draft-ietf-opsawg-pcapng (§4.1 section, §4.2 interface, §4.3 enhanced packet,
§4.4 simple packet, appendix A packet).
"""

import struct

import numpy as np

from .frames import Frames, refill

_SECTION = 0x0A0D0D0A
_INTERFACE = 1
_PACKET = 2
_SIMPLE = 3
_ENHANCED = 6
_MAX_BLOCK_BYTES = 16 << 20
_MAX_TS_US = 253_402_300_800_000_000  # the year 10000: later times are damage
_TS_RESOLUTION = 9  # interface option: units of the time stamps
_TS_OFFSET = 14  # interface option: seconds to add


def is_pcapng(start):
    """Do these first bytes of a file belong to a pcapng file?"""
    return start[:4] == b"\n\r\r\n"


class _Interface:
    def __init__(self, order, body):
        self.link, self.snap_bytes = struct.unpack_from(order + "H2xI", body)
        self.units_per_s, self.offset_us = 1_000_000, 0
        pos = 8
        while pos + 4 <= len(body):
            code, size = struct.unpack_from(order + "HH", body, pos)
            value = body[pos + 4 : pos + 4 + size]
            if code == 0:
                break
            if code == _TS_RESOLUTION and value:
                exponent = value[0] & 127
                self.units_per_s = (2 if value[0] & 128 else 10) ** exponent
            elif code == _TS_OFFSET and len(value) == 8:
                self.offset_us = struct.unpack(order + "q", value)[0] * 1_000_000
            pos += 4 + (size + 3 & ~3)

    def microseconds(self, high, low):
        return (high << 32 | low) * 1_000_000 // self.units_per_s + self.offset_us


class _Walker:
    """Hops over blocks; keeps the section's byte order and interfaces."""

    def __init__(self, tally):
        self.tally = tally
        self.order = "<"
        self.interfaces = []
        self.last_ts = 0

    def walk(self, data, base):
        """-> (rows of (start, size, ts, link), next position, is_bad)."""
        rows = []
        pos = 0
        while pos + 12 <= len(data):
            kind = struct.unpack_from(self.order + "I", data, pos)[0]
            if kind == _SECTION:
                self.order = "<" if data[pos + 8 : pos + 12] == b"\x4d\x3c\x2b\x1a" else ">"
                self.interfaces = []
            size = struct.unpack_from(self.order + "I", data, pos + 4)[0]
            if size < 12 or size & 3 or size > _MAX_BLOCK_BYTES:
                return rows, pos, True
            if pos + size > len(data):
                break
            if kind == _ENHANCED or kind == _SIMPLE or kind == _PACKET:
                self._packet(kind, data, pos, size, base, rows)
            elif kind == _INTERFACE and size >= 20:
                self.interfaces.append(_Interface(self.order, data[pos + 8 : pos + size - 4]))
            pos += size
        return rows, pos, False

    def _packet(self, kind, data, pos, size, base, rows):
        interface, high, low = 0, 0, 0
        if kind == _ENHANCED:
            start, room = pos + 28, size - 32
            if room >= 0:
                interface, high, low, held = struct.unpack_from(self.order + "IIII", data, pos + 8)
        elif kind == _PACKET:
            start, room = pos + 28, size - 32
            if room >= 0:
                interface, high, low, held = struct.unpack_from(
                    self.order + "H2xIII", data, pos + 8
                )
        else:
            start, room = pos + 12, size - 16
            held = room
        if room < 0 or held > room or interface >= len(self.interfaces):
            self.tally.error(base + pos, "damaged packet block")
            return
        face = self.interfaces[interface]
        if kind == _SIMPLE:  # has no time of its own and no captured length
            original = struct.unpack_from(self.order + "I", data, pos + 8)[0]
            held = min(original, face.snap_bytes or original, room)
        else:
            ts = face.microseconds(high, low)
            if 0 <= ts < _MAX_TS_US:
                self.last_ts = ts
            else:
                self.tally.error(base + pos, "packet block with an impossible time")
        rows.append((start, held, self.last_ts, face.link))


def frames(stream, tally, chunk_bytes):
    """Yield `Frames` from `stream`, which stands at the start of the file."""
    walker = _Walker(tally)
    rest = b""
    base = 0
    while True:
        array, end = refill(stream, rest, chunk_bytes)
        rows, pos, is_bad = walker.walk(memoryview(array)[:end], base)
        if rows:
            start, size, ts, link = np.array(rows, np.int64).T
            yield Frames(array, base, start, size, ts, link)
            tally.add("frames", len(rows))
        if is_bad:
            # Block lengths are the only way forward: without them, nothing is sure.
            tally.error(base + pos, "damaged block: the rest of the file is not read")
            return
        if end == len(rest):
            if pos < end:
                tally.error(base + pos, "block cut short at the end of the file")
            return
        rest = array[pos:end]
        base += pos
