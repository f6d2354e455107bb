"""TCP segments -> the bytes of each direction of each connection, in order.

All streams of a batch are looked at at once.  Where segments follow each other,
repeats and overlaps included, the result is `Pieces` that point into the batch's
buffer; a stream with a hole goes through `Reorder`, segment by segment.
"""

from dataclasses import dataclass

import numpy as np

from ..capture.link import RST, SYN
from ..columns import Growing, factorized
from .connections import WHOLE, bases, wrapped
from .reorder import Reorder

_APART = 1 << 34  # more than any two places of one stream in one batch differ


@dataclass
class Pieces:
    """Bytes in stream order, streams one after the other, no holes.

    `stream` is 2 × connection number + direction, `start` and `size` the place in
    `data`, `ordinal` and `ts` those of the segment, `offset` the place in the file.
    """

    data: np.ndarray
    stream: np.ndarray
    start: np.ndarray
    size: np.ndarray
    ordinal: np.ndarray
    ts: np.ndarray
    offset: np.ndarray

    def take(self, index):
        """Only the entries at `index` (positions or a mask)."""
        names = [name for name in self.__dataclass_fields__ if name != "data"]
        return Pieces(self.data, **{name: getattr(self, name)[index] for name in names})


class Streams:
    """What is known of every stream: next sequence number, and who waits."""

    def __init__(self):
        self._next = Growing(-1, np.int64)
        self.is_opened = Growing(False, bool)  # its SYN was seen
        self._reorders = {}

    def next_seq(self, count):
        """With what sequence number each stream of `count` connections goes on; -1: not known."""
        self._next.reserve(2 * count)
        return self._next.array[: 2 * count]

    def feed(self, segments, numbers, ordinals, count):
        """-> (`Pieces`, {stream: [Part, …]}); `count` connections are known by now."""
        self._next.reserve(2 * count)
        self.is_opened.reserve(2 * count)
        stream = 2 * numbers + ~segments.to_server
        codes, uniques = factorized(stream)
        order = np.argsort(codes, kind="stable")
        group = codes[order]
        flags = segments.flags[order]
        is_syn = flags & SYN != 0
        seq = segments.seq[order] + is_syn
        size = np.where(flags & RST != 0, 0, segments.size[order])
        is_data = size > 0
        self.is_opened.array[uniques[group[is_syn]]] = True
        base = bases(self._next.array[uniques], group, seq, is_data, is_syn)

        order, group, seq, size = order[is_data], group[is_data], seq[is_data], size[is_data]
        rel = wrapped(seq - base[group])
        # -> how far each stream was before each segment, and at the end of the batch.
        floor = group * _APART
        reach = np.maximum.accumulate(np.maximum(rel + size, 0) + floor)
        before = np.maximum(np.concatenate(([0], reach[:-1])) - floor, 0)
        reached = np.zeros(len(uniques), np.int64)
        reached[group] = reach - floor  # the last assignment of each stream stays
        is_slow = np.zeros(len(uniques), bool)
        is_slow[group[(rel > before) | (segments.held[order] < size)]] = True
        if self._reorders:
            is_slow |= np.isin(uniques, list(self._reorders))
        self._next.array[uniques] = np.where(base < 0, -1, (base + reached) % WHOLE)

        mine = is_slow[group]
        slow = order[mine], uniques[group[mine]], seq[mine], base[group[mine]]
        parts = self._feed_slow(segments, ordinals, *slow) if mine.any() else {}
        fresh = np.flatnonzero((rel + size > before) & ~is_slow[group])
        cut = np.maximum(before[fresh] - rel[fresh], 0)
        source = order[fresh]
        pieces = Pieces(
            data=segments.data,
            stream=uniques[group[fresh]],
            start=segments.start[source] + cut,
            size=size[fresh] - cut,
            ordinal=ordinals[source],
            ts=segments.ts[source],
            offset=segments.offset[source] + cut,
        )
        return pieces, parts

    def _feed_slow(self, segments, ordinals, *columns):
        parts: dict[int, list] = {}
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for at, stream, seq, base in rows:
            if stream not in self._reorders:
                self._reorders[stream] = Reorder(base)
            start, held = int(segments.start[at]), int(segments.held[at])
            data = segments.data[start : start + held].tobytes()
            about = (segments.size, ordinals, segments.ts, segments.offset)
            found = self._reorders[stream].feed(
                seq % WHOLE, data, *(int(one[at]) for one in about)
            )
            parts.setdefault(stream, []).extend(found)
        for stream in parts:
            if not self._reorders[stream].is_waiting:
                self._next.array[stream] = self._reorders.pop(stream).next
        return parts

    def cut_off(self, segments, stream, at):
        """Of the segments `at`, which end a stream: (place, bytes missing before it), …

        Only where nothing waits that could still fill the hole.
        """
        end = segments.seq[at] + segments.size[at]
        known = self._next.array[stream[at]]
        missing = wrapped(end - known)
        for place in np.flatnonzero((known >= 0) & (missing > 0)).tolist():
            if int(stream[at[place]]) not in self._reorders:
                yield int(at[place]), int(missing[place])

    def finish(self):
        """No more segments will come -> {stream: [Part, …]} of what still waited."""
        parts = {stream: reorder.finish() for stream, reorder in self._reorders.items()}
        self._reorders.clear()
        return {stream: out for stream, out in parts.items() if out}
