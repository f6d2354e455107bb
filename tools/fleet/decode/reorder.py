"""One direction of one connection whose segments do not simply follow each other.

Puts segments into order, drops what came twice, and finds what never came.  A
hole is given up when too much waits behind it; the bytes behind it are then
handed on as a new run, marked with the number of bytes missing.
"""

import heapq
from typing import NamedTuple

from .connections import WHOLE, wrapped

_WAIT_BYTES = 4 << 20
_WAIT_US = 60_000_000


class Part(NamedTuple):
    """Bytes in stream order: `missing` bytes are not there before them.

    `ordinal` and `ts` are those of the segment that completed the run up to here,
    `offset` is where the bytes lie in the capture.
    """

    data: bytes
    ordinal: int
    ts: int
    offset: int
    missing: int


class Reorder:
    """Feed it segments; it hands out `Part`s.  `next` is the next sequence number."""

    def __init__(self, next_seq):
        self.next = next_seq
        self._place = 0  # of `next`, counted from here on without wrapping
        self._waiting = []  # heap of (place, order of arrival, data, ordinal, ts, offset)
        self._bytes = 0
        self._missing = 0
        self._cut = (0, 0, 0)  # ordinal, ts, offset of the last segment that was cut off
        self._arrived = 0

    @property
    def is_waiting(self):
        """Do segments wait behind a hole, or does one follow what was cut off?"""
        return bool(self._waiting) or self._missing > 0

    def feed(self, seq, data, size, ordinal, ts, offset):
        """Take a segment of `size` bytes, of which `data` was captured -> Parts."""
        place = self._place + wrapped(seq - self.next)
        out = []
        if place <= self._place:
            self._take(out, place, data, size, ordinal, ts, offset)
            self._drain(out, ordinal, ts)
        elif size:
            self._arrived += 1
            entry = (place, self._arrived, data, size, ordinal, ts, offset)
            heapq.heappush(self._waiting, entry)
            self._bytes += len(data)
        while self._bytes > _WAIT_BYTES or (self._waiting and ts - self._waiting[0][5] > _WAIT_US):
            self.give_up(out)
        return out

    def give_up(self, out):
        """Call the first hole a gap and go on behind it; appends to `out`."""
        place, _, _, _, ordinal, ts, _ = self._waiting[0]
        self._missing += place - self._place
        self.next = (self.next + place - self._place) % WHOLE
        self._place = place
        # Segments that waited keep their own times: only the hole made them wait.
        self._drain(out, -1, ts)

    def finish(self):
        """No more segments will come -> Parts."""
        out = []
        while self._waiting:
            self.give_up(out)
        if self._missing:  # and nothing behind it
            out.append(Part(b"", *self._cut, self._missing))
            self._missing = 0
        return out

    def _drain(self, out, ordinal, ts):
        waiting = self._waiting
        while waiting and waiting[0][0] <= self._place:
            place, _, data, size, own_ordinal, own_ts, offset = heapq.heappop(waiting)
            self._bytes -= len(data)
            if place + size <= self._place:
                continue  # a second copy, from a file that overlaps: what is behind came before it
            if own_ordinal > ordinal:
                ordinal, ts = own_ordinal, own_ts
            self._take(out, place, data, size, ordinal, ts, offset)

    def _take(self, out, place, data, size, ordinal, ts, offset):
        old = self._place - place
        fresh = size - old
        if fresh <= 0:
            return
        data = data[old:]
        if data:
            out.append(Part(data, ordinal, ts, offset + old, self._missing))
            self._missing = 0
        # Bytes that the capture cut off are missing, too.
        if fresh > len(data):
            self._missing += fresh - len(data)
            self._cut = ordinal, ts, offset + size - fresh
        self._place += fresh
        self.next = (self.next + fresh) % WHOLE
