"""Where the clock of a capture was set while it ran.

A small computer that records may begin with the time of its last shutdown, until a time
server tells it better.  Set back, its packets show it: TCP knows their order.  Set forward,
it looks like a silence, and only that nobody minded tells that it may be none: a broker
closes after one and a half keep alive times.
"""

import numpy as np

from ..columns import SET_US, over
from .messages import GRACE_US
from .rows import FAR, TYPES
from .sessions import allowed_silence_us

_CLOSES = 1.5  # keep alive times until a broker closes
_CLOSES_US = 10_000_000  # and its timers may add so much


class Clock:
    """`back`: rows whose time is earlier than that of the packet before them in their file, or
    on the same connection; `before_us` is that one's.

    `forward`: packets of clients behind a silence that was perhaps none, `forward_us` how long
    it was.
    """

    def __init__(self, rows, sessions, gaps):
        self._rows, self._gaps = rows, gaps
        self._at = at = np.flatnonzero(rows.is_packet)
        self._step = np.diff(rows.ts[at])
        is_back = (np.diff(rows.connection[at]) == 0) & (self._step < -SET_US)
        places = np.flatnonzero(is_back)
        told = np.flatnonzero(rows.kind == TYPES["CLOCK_SET"])
        places = places[~np.isin(rows.connection[at[places]], rows.connection[told])]
        self.back = np.concatenate((at[places + 1], told))
        told_us = rows.ts[told] + rows.payload_bytes[told]
        self.before_us = np.concatenate((rows.ts[at[places]], told_us))
        self.forward, self.forward_us = self._forward(sessions)

    def _forward(self, sessions):
        keep_alive_s = sessions.keep_alive_s
        rows, at = self._rows, self._at
        mine = np.flatnonzero(rows.direction[at] == 0)
        follows = np.flatnonzero(np.diff(rows.connection[at[mine]]) == 0)
        before, place = mine[follows], mine[follows + 1]
        connection = rows.connection[at[place]]
        silence = rows.ts[at[place]] - rows.ts[at[before]]
        closes = keep_alive_s * 1_000_000 * _CLOSES + _CLOSES_US
        closes = np.where(keep_alive_s > 0, closes, FAR)
        found = np.flatnonzero(silence > closes[connection])
        # Packets that the capture missed are no silence.
        found = found[~self._gaps.touch(at[before[found]], at[place[found]])]
        # The server did not close the connection, and said nothing in that time.  After its
        # client's goodbye it need not close it.
        theirs = at[rows.direction[at] == 1]
        last = over(np.maximum, len(rows.client_of), rows.connection[theirs], theirs, -1)
        bye = np.where(sessions.at_goodbye(rows.direction, 0) == 1, sessions.goodbye_row, -1)
        where = connection[found]
        is_closed = (bye[where] > at[before[found]]) & (last[where] < at[place[found]])
        found = found[~is_closed]
        steps = zip(before[found].tolist(), place[found].tolist(), strict=True)
        longest = np.array([self._step[begin:end].max() for begin, end in steps], np.int64)
        allowed = allowed_silence_us(keep_alive_s[connection[found]])
        is_set = silence[found] - longest <= allowed
        return at[place[found[is_set]]], longest[is_set]

    def holes(self):
        """[(client, begin, end)] of the times that the capture has twice, and shortly before."""
        rows, back = self._rows, self.back
        times = (rows.ts[back] - GRACE_US).tolist(), self.before_us.tolist()
        return list(zip(rows.client[back].tolist(), *times, strict=True))

    def is_twice(self, index):
        """Which of these rows have a time that their client's packets have twice?"""
        result = np.zeros(len(index), bool)
        for client, begin, end in self.holes():
            ts = self._rows.ts[index]
            result |= (self._rows.client[index] == client) & (ts >= begin) & (ts <= end)
        return result
