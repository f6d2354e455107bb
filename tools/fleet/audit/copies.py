"""Connections that a capture shows twice: recorded on both sides of an address translation.

Two connections of one client that begin together and whose packets are the same ones at
the same times are one.  (Repeated frames of one connection are TCP's business, and are
gone before this.)
"""

import numpy as np
import pyarrow as pa

_BEGIN_US = 1_000_000  # between the beginnings of the two
_SKEW_US = 100_000  # between a packet and its copy
_PACKETS = 3  # fewer packets prove nothing
_PART = 0.9  # this part of the smaller connection's packets must be there twice


class Copies:
    """Which connections of `rows` are copies: {connection: the one that is kept}."""

    def __init__(self, rows):
        self._rows = rows
        self.of = {}
        start, client = rows.start_of, rows.client_of
        near = (np.diff(client) == 0) & (np.diff(start) < _BEGIN_US)
        near &= start[1:] < rows.end_of[:-1]
        for one in np.flatnonzero(near).tolist():
            first = self.of.get(one, one)
            if self._is_same(first, one + 1):
                self.of[one + 1] = first

    def _is_same(self, one, other):
        a, b = self._packets(one), self._packets(other)
        fewer, more = (a, b) if len(a) <= len(b) else (b, a)
        if len(fewer) < _PACKETS:
            return False
        times: dict[tuple, list] = {}
        for key, ts in more:
            times.setdefault(key, []).append(ts)
        twins = sum(any(abs(ts - t) < _SKEW_US for t in times.get(key, ())) for key, ts in fewer)
        return twins >= _PART * len(fewer)

    def _packets(self, connection):
        rows = self._rows
        first, last = rows.first_of[connection : connection + 2]
        span = np.arange(first, last)
        span = span[rows.is_packet[span]]
        names = ("direction", "kind", "flags", "packet_id", "topic", "payload_hash")
        keys = zip(*(getattr(rows, name)[span].tolist() for name in names), strict=True)
        return list(zip(keys, rows.ts[span].tolist(), strict=True))

    def without(self, table):
        """The events without those of the copies -> (table, [(original, text)]).

        The original is the connection's number in `Rows` of the table that is left.
        """
        rows = self._rows
        copies = np.array(sorted(self.of), np.int64)
        keep = np.ones(len(rows), bool)
        keep[rows.source[np.isin(rows.connection, copies)]] = False
        names = rows.strings("connection", rows.first_of[copies]).to_pylist()
        told = []
        for copy, name in zip(copies.tolist(), names, strict=True):
            original = self.of[copy]
            before = int(np.searchsorted(copies, original))
            told.append((original - before, "also captured as %s" % name))
        return table.filter(pa.array(keep)), told
