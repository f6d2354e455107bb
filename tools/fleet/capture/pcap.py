"""The pcap file format: header, record walk, and finding a record in the middle.

Knows both byte orders and both resolutions (micro- and nanoseconds).  Never
looks into a frame.  Format: IETF draft-ietf-opsawg-pcap.
"""

import struct
from typing import NamedTuple

import numpy as np

from . import chunks
from .frames import CaptureError, Frames, words

HEADER_BYTES = 24
RECORD_BYTES = 16
MAX_FRAME_BYTES = 262_144  # as in libpcap and Wireshark; a larger one is a damaged record
_MAX_STEP_S = 7 * 86_400  # between neighbours of a chain that is searched for

_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1),
    b"\xa1\xb2\xc3\xd4": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1000),
}


class Header(NamedTuple):
    """`order` as in struct, `per_us` fractions in a microsecond, `link` type."""

    order: str
    per_us: int
    link: int


def is_pcap(start):
    """Do these first bytes of a file belong to a pcap file?"""
    return start[:4] in _MAGICS


def read_header(start):
    """`Header` from the first 24 bytes; CaptureError when cut short."""
    if len(start) < HEADER_BYTES:
        raise CaptureError(len(start), "pcap header cut short")
    order, per_us = _MAGICS[start[:4]]
    # The upper half of the field tells about frame check sequences, not the type.
    return Header(order, per_us, struct.unpack_from(order + "I", start, 20)[0] & 0xFFFF)


class Walker:
    """Hops over records, as `chunks` has it; steps tell of the second of each."""

    unit, head_bytes = "record", RECORD_BYTES
    sync_bytes = chunks.SYNC_BYTES
    most_bytes = MAX_FRAME_BYTES

    def __init__(self, header, tally=None):
        self._header, self._tally = header, tally

    def walk(self, array, end, limit, base, pos):
        data, starts = memoryview(array)[:end], []
        unpack, append = struct.Struct(self._header.order + "I").unpack_from, starts.append
        limit, is_bad = min(limit, end - RECORD_BYTES + 1), False
        while pos < limit:
            size = unpack(data, pos + 8)[0]
            is_bad = size > MAX_FRAME_BYTES
            after = pos + RECORD_BYTES + size
            if is_bad or after > end:
                break
            append(pos)
            pos = after
        self._tally.add("frames", len(starts))
        if not starts:
            return [], pos, is_bad
        u32, at = words(array, self._header.order + "u4"), np.array(starts, np.int64)
        seconds, fraction, size = (u32[at + place].astype(np.int64) for place in (0, 4, 8))
        ts = seconds * 1_000_000 + fraction // self._header.per_us
        frames = Frames(array, base, at + RECORD_BYTES, size, ts, self._header.link)
        return [frames], pos, is_bad

    def may_begin(self, window, count):
        u32 = words(window, self._header.order + "u4")
        return np.flatnonzero(self._is_good(*(u32[at : at + count] for at in (4, 8, 12))))

    def step(self, data, pos, before):
        second, *rest = struct.unpack_from(self._header.order + "IIII", data, pos)
        is_near = before is None or abs(second - before) <= _MAX_STEP_S
        return pos + RECORD_BYTES + rest[1] if is_near and self._is_good(*rest) else -1, second

    def _is_good(self, fraction, size, original):
        # Can these be the numbers of a record's head?  Of one, or of many in arrays.
        is_good = (size >= 1) & (size <= MAX_FRAME_BYTES) & (size <= original)
        return is_good & (fraction < 1_000_000 * self._header.per_us) & (original < 1 << 24)
