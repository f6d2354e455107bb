"""Segments whose times are in the wrong order, put into the one that TCP itself tells.

Theory of operation.  A segment says by its acknowledgement how far its sender had read the
other direction: those bytes had passed the capture before it.  Times may say otherwise, where
several queues of a network card, two cards, or two captures that were merged have times of
their own.  All connections of a batch are looked at at once for a segment that stands before
bytes that it acknowledges; only such a connection is gone through one segment after the other.
What stands too early waits for what it acknowledges, and takes over its time.  Holes in one
direction are not this module's: `streams` waits for what fills them.
"""

import bisect
import heapq
from dataclasses import replace
from itertools import accumulate

import numpy as np

from ..capture.link import ACK, RST, SYN
from ..columns import marked
from .connections import NEAR_BYTES, bases, wrapped

_BEYOND = 1 << 33  # more than any place in a stream
_APART = 1 << 35  # and more than two places of one connection differ


def in_tcp_order(segments, numbers, next_seq):
    """The same segments, those of each connection in an order that TCP does not contradict.

    `numbers` are their connections, `next_seq` the sequence number that each stream
    (2 × connection + direction) goes on with, -1 where none is known.
    """
    ends = _Ends(segments, numbers, next_seq)
    wrong = ends.contradicted()
    if not len(wrong):
        return segments
    order, ts = np.arange(len(segments.ts)), segments.ts.copy()
    for group in wrong.tolist():
        places, *columns = ends.columns(group)
        found = _Schedule(segments.ts[places].tolist(), *columns)
        order[places], ts[places] = places[found.order], found.ts
    return replace(segments.take(order), ts=ts)


class _Ends:
    # Where each segment begins and ends in its stream, and how far it acknowledges the other
    # one; sorted by connection.
    def __init__(self, segments, numbers, next_seq):
        self._order = order = np.argsort(numbers, kind="stable")
        connection = numbers[order]
        is_first = np.diff(connection, prepend=-1) != 0
        self._group = np.cumsum(is_first) - 1
        self._first = np.append(np.flatnonzero(is_first), len(order))
        flags, seq = segments.flags[order], segments.seq[order]
        self.side = (~segments.to_server[order]).astype(np.int64)
        stream = 2 * self._group + self.side
        known = next_seq.reshape(-1, 2)[connection[is_first]].ravel()
        is_syn, is_reset = flags & SYN != 0, flags & RST != 0
        size = np.where(is_reset, 0, segments.size[order] + is_syn)
        self.is_data = size > 0
        base = bases(known, stream, seq, self.is_data, is_syn)
        self.begin = wrapped(seq - base[stream])
        self.end = self.begin + size
        self.ack = wrapped(segments.ack[order] - base[stream ^ 1])
        self.ack[(flags & ACK == 0) | is_reset | (base[stream ^ 1] < 0)] = -_BEYOND
        self.begin[is_reset] = _BEYOND

    def contradicted(self):
        """The groups in which a segment stands before bytes that it acknowledges."""
        floor = self._group * _APART
        is_wrong = np.zeros(len(floor), bool)
        for side in (0, 1):
            mine = self.is_data & (self.side == side)
            reach = np.maximum.accumulate(np.where(mine, self.end, -_BEYOND) + floor)
            before = np.maximum(np.concatenate(([0], reach[:-1])) - floor, 0)
            # If nothing is left out, nothing comes a second time.
            is_new = mine & (self.end > before)
            is_behind = mine & (self.begin > before)
            if is_behind.any():
                has_hole = marked(len(self._first), self._group[is_behind])
                is_new |= mine & has_hole[self._group]
            lowest = np.where(is_new, self.begin, _BEYOND) + floor
            lowest = np.minimum.accumulate(lowest[::-1])[::-1]
            is_wrong[:-1] |= (self.side[:-1] != side) & (lowest[1:] < (self.ack + floor)[:-1])
        return np.unique(self._group[is_wrong])

    def columns(self, group):
        """Where the segments of a group stand in the batch, and what a `_Schedule` takes."""
        mine = slice(self._first[group], self._first[group + 1])
        names = ("side", "begin", "end", "ack", "is_data")
        return self._order[mine], *(getattr(self, name)[mine].tolist() for name in names)


class _Schedule:
    # The segments of one connection; `order` and `ts` are what comes out.
    def __init__(self, ts, side, begin, end, ack, is_data):
        self._side, self._begin, self._ack, self._ts = side, begin, ack, ts
        covered = _Covered(), _Covered()
        is_new = [
            is_data[at] and covered[one].add(begin[at], end[at]) for at, one in enumerate(side)
        ]
        is_copy = [a and not b for a, b in zip(is_data, is_new, strict=True)]
        # Where the first new bytes of each side begin, from each place on.
        self._ahead = []
        for one in (0, 1):
            both = zip(is_new, side, begin, strict=True)
            lowest = [at if new and mine == one else _BEYOND for new, mine, at in both][::-1]
            self._ahead.append(list(accumulate(lowest, min, initial=_BEYOND))[::-1])
        self._waiting: tuple[list, list] = ([], [])  # heaps of (begin, place)
        self.order, self.ts = [], []
        for at in range(len(side)):
            own = self._waiting[side[at]]
            is_behind = bool(own) and own[0][0] < begin[at]
            if not is_copy[at] and (is_behind or self._has_to_wait(at, at)):
                heapq.heappush(own, (begin[at], at))
            else:
                self._take(at, ts[at])
            while self._release(at):
                pass
        for _, at in sorted((*self._waiting[0], *self._waiting[1]), key=lambda one: one[1]):
            self._take(at, ts[at])

    def _has_to_wait(self, at, reached):
        # For bytes that come behind the place reached, or that wait themselves?
        other, ack = 1 - self._side[at], self._ack[at]
        if ack - NEAR_BYTES < self._ahead[other][reached + 1] < ack:
            return True
        if not self._waiting[other]:
            return False
        begin, first = self._waiting[other][0]
        # Two segments acknowledge each other: one was sent before, which the capture lacks.
        return ack - NEAR_BYTES < begin < ack and self._begin[at] >= self._ack[first]

    def _release(self, reached):
        is_any = False
        for heap in self._waiting:
            while heap and not self._has_to_wait(heap[0][1], reached):
                at = heapq.heappop(heap)[1]
                self._take(at, max(self._ts[at], self.ts[-1]))
                is_any = True
        return is_any

    def _take(self, at, ts):
        self.order.append(at)
        self.ts.append(ts)


class _Covered:
    # The parts of a stream that were seen: disjoint, and none before the first byte.
    def __init__(self):
        self._begins, self._ends = [-_BEYOND], [0]

    def add(self, begin, end):
        """Are any of these bytes new?"""
        low = bisect.bisect_left(self._ends, begin)
        if self._begins[low : low + 1] and self._begins[low] <= begin and end <= self._ends[low]:
            return False
        high = bisect.bisect_right(self._begins, end)
        self._begins[low:high] = [min([begin, *self._begins[low:high]])]
        self._ends[low:high] = [max([end, *self._ends[low:high]])]
        return True
