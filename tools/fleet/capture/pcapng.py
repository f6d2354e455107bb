"""The pcapng file format: sections, interfaces, packet blocks, and finding a block.

Blocks of other kinds are passed over.  Never looks into a frame.  Format: IETF
draft-ietf-opsawg-pcapng (§4.1 section, §4.2 interface, §4.3 enhanced packet,
§4.4 simple packet, appendix A packet).

One loop hops from block to block and notes where they begin; what they hold is read
for all packets of a buffer at once.
"""

import struct

import numpy as np

from ..columns import FAR
from . import chunks
from .frames import Frames, refill, words

SECTION_MAGIC = b"\n\r\r\n"
_SECTION = 0x0A0D0D0A
_INTERFACE = 1
_PACKET = 2
_SIMPLE = 3
_ENHANCED = 6
_MAX_BLOCK_BYTES = 16 << 20
_MAX_FRAME_BLOCK_BYTES = 1 << 19
_READ_BYTES = 1 << 20
_MAX_TS_US = 253_402_300_800_000_000  # the year 10000; a later time is damage
_TS_RESOLUTION = 9  # interface option: units of the time stamps
_TS_OFFSET = 14  # interface option: seconds to add
_BYTE_ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}


def is_pcapng(start):
    """Do these first bytes of a file belong to a pcapng file?"""
    return start[:4] == SECTION_MAGIC


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

    def microseconds(self, units):
        """-> microseconds of an array of time stamps, -1 where they are impossible."""
        if self.units_per_s % 1_000_000 == 0 and self.units_per_s < 1 << 63:
            us = units // np.uint64(self.units_per_s // 1_000_000)
            us = np.minimum(us, np.uint64(_MAX_TS_US)).astype(np.int64)
            if abs(self.offset_us) < _MAX_TS_US:
                us += np.where(us < _MAX_TS_US, self.offset_us, 0)
                return np.where((us >= 0) & (us < _MAX_TS_US), us, -1)
        exact = [n * 1_000_000 // self.units_per_s + self.offset_us for n in units.tolist()]
        return np.array([us if 0 <= us < _MAX_TS_US else -1 for us in exact], np.int64)


class Walker:
    """Hops over blocks, as `chunks` has it; keeps the section's byte order and interfaces."""

    unit, head_bytes = "block", 12
    sync_bytes = 2 * chunks.SYNC_BYTES
    most_bytes = _MAX_FRAME_BLOCK_BYTES

    def __init__(self, tally=None, order="<", interfaces=()):
        self.tally = tally
        self.order = order
        self.interfaces = list(interfaces)
        self._last_ts = 0

    def walk(self, array, end, limit, base, pos=0):
        data = memoryview(array)[:end]
        found, starts = [], []
        head = struct.Struct(self.order + "II").unpack_from
        append = starts.append
        limit = min(limit, end - 11)
        while pos < limit:
            kind, size = head(data, pos)
            if kind == _SECTION:
                found += self._frames(array, base, starts)
                self.order = _BYTE_ORDERS.get(bytes(data[pos + 8 : pos + 12]), self.order)
                self.interfaces = []
                head = struct.Struct(self.order + "II").unpack_from
                size = head(data, pos)[1]
                starts.clear()
            if size < 12 or size & 3 or size > _MAX_BLOCK_BYTES:
                return found + self._frames(array, base, starts), pos, True
            after = pos + size
            if after > end:
                break
            if kind == _INTERFACE and size >= 20:
                body = bytes(data[pos + 8 : after - 4])
                self.interfaces.append(_Interface(self.order, body))
            append(pos)
            pos = after
        return found + self._frames(array, base, starts), pos, False

    def may_begin(self, window, count):
        u32 = words(window, self.order + "u4")
        kind, size = u32[:count], u32[4 : 4 + count]
        is_good = (kind == _ENHANCED) & (size >= 32) & (size <= _MAX_FRAME_BLOCK_BYTES)
        return np.flatnonzero(is_good & (size & 3 == 0))

    def step(self, data, pos, order):
        order = order or self.order
        if data[pos : pos + 4] == SECTION_MAGIC:
            order = _BYTE_ORDERS.get(bytes(data[pos + 8 : pos + 12]), order)
        size = struct.unpack_from(order + "I", data, pos + 4)[0]
        after = pos + size
        is_good = size >= 12 and not size & 3 and size <= _MAX_BLOCK_BYTES
        if is_good and after <= len(data):  # each block ends with its length once more
            is_good = struct.unpack_from(order + "I", data, after - 4)[0] == size
        return after if is_good else -1, order

    def _frames(self, array, base, starts):
        # All packet blocks among those at `starts`, read at once.
        at = np.array(starts, np.int64)
        u32 = words(array, self.order + "u4")
        at = at[np.isin(u32[at], (_ENHANCED, _PACKET, _SIMPLE))]
        kind = u32[at]
        is_simple = kind == _SIMPLE
        start = at + np.where(is_simple, 12, 28)
        room = u32[at + 4].astype(np.int64) - np.where(is_simple, 16, 32)
        place = u32[at + 8].astype(np.int64)
        if (kind == _PACKET).any():
            old = words(array, self.order + "u2")[at + 8]
            place = np.where(kind == _PACKET, old, place)
        held = u32[at + 20].astype(np.int64)
        if is_simple.any():
            # No time of its own, no captured length, always the first interface.
            snap = (self.interfaces[0].snap_bytes if self.interfaces else 0) or FAR
            held = np.where(is_simple, np.clip(room, 0, np.minimum(place, snap)), held)
            place = np.where(is_simple, 0, place)
        good = (room >= 0) & (held <= room) & (place < len(self.interfaces))
        if not good.all():
            for one in at[~good].tolist():
                self.tally.error(base + one, "damaged packet block")
            at, start, held, place = at[good], start[good], held[good], place[good]
            is_simple = is_simple[good]
        if not len(at):
            return []
        self.tally.add("frames", len(at))
        units = u32[at + 12].astype(np.uint64) << np.uint64(32) | u32[at + 16]
        used = np.unique(place).tolist()
        ts = np.empty(len(place), np.int64)
        for one in used:
            mine = slice(None) if len(used) == 1 else place == one
            ts[mine] = self.interfaces[one].microseconds(units[mine])
        no_time = (ts < 0) | is_simple
        if no_time.any():
            for one in at[(ts < 0) & ~is_simple].tolist():
                self.tally.error(base + one, "packet block with an impossible time")
            # Such a packet gets the time of the one before.
            known = np.maximum.accumulate(np.where(no_time, -1, np.arange(len(ts))))
            ts = np.where(known < 0, self._last_ts, ts[known])
        self._last_ts = int(ts[-1])
        links = np.array([one.link for one in self.interfaces], np.int64)
        is_one = (links == links[0]).all()
        return [Frames(array, base, start, held, ts, int(links[0]) if is_one else links[place])]


class _Hopper(Walker):
    # Reads sections and interfaces, but no packet.
    def _frames(self, array, base, starts):
        return []


def cuts(stream, size, range_bytes):
    """Yield (place, arguments of a `Walker` that begins there) for ranges of about this size.

    `stream` stands at the begin of a file of `size` bytes.  Behind damage nothing is cut.
    """
    walker, base, rest, goal = _Hopper(), 0, b"", range_bytes
    while goal < size - range_bytes // 2:
        array, end = refill(stream, rest, _READ_BYTES)
        _, pos, is_bad = walker.walk(array, end, min(end, goal - base), base)
        if is_bad or end == len(rest):
            return
        base, rest = base + pos, array[pos:end]
        if base >= goal:
            yield base, (walker.order, list(walker.interfaces))
            goal = base + range_bytes
