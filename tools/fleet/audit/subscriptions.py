"""What each client had subscribed to, from when to when, and how it could be reached.

A subscription begins with its SUBACK and ends with UNSUBSCRIBE or with the session.
"""

import numpy as np
import pyarrow as pa

from .. import schemas
from .messages import PUBACK, PUBREC
from .rows import FAR, TYPES
from .sessions import parsed, table
from .spans import prefix

_SUBSCRIBE, _SUBACK = TYPES["SUBSCRIBE"], TYPES["SUBACK"]
_UNSUBSCRIBE, _UNSUBACK = TYPES["UNSUBSCRIBE"], TYPES["UNSUBACK"]
# Subscription options of level 5 (§3.8.3.1); below it their bits are 0.
_QOS, _NO_LOCAL, _AS_PUBLISHED = 3, 4, 8


def subscriptions(rows, sessions, gaps, flows):
    """-> (the `schemas.SUBSCRIPTIONS` table, [(row, filter, code)] of those refused)."""
    kinds = [_SUBSCRIBE, _SUBACK, _UNSUBSCRIBE, _UNSUBACK]
    # The fields were read as those of level 4 where the level was not captured.
    at = np.flatnonzero(np.isin(rows.kind, kinds))
    at = at[(rows.level[at] == 4) | (rows.numbers("level", at) > 0)]
    details = parsed(rows.strings("detail", at))
    found = _Spans()
    # Asked and answered, in whatever order the capture shows the two.
    waiting: dict[tuple, tuple] = {}
    refused: list[tuple] = []
    for row, detail in zip(at.tolist(), details, strict=True):
        connection = int(rows.connection[row])
        kind = int(rows.kind[row])
        session = (int(rows.client[row]), int(sessions.number[connection]))
        is_about = kind in (_SUBSCRIBE, _SUBACK)
        key = (connection, int(rows.packet_id[row]), is_about)
        other = waiting.pop(key, None)
        if kind == _UNSUBSCRIBE:
            # Nothing has to be passed on from here on, unless the broker says that it refuses.
            found.end(session, detail.get("filters", []), int(rows.ts[row]))
        if other is None or other[0] == kind:
            waiting[key] = (kind, row, detail)
            continue
        is_asked_first = kind in (_SUBACK, _UNSUBACK)
        asked, answer = (other[2], detail) if is_asked_first else (detail, other[2])
        asked_row, answer_row = (other[1], row) if is_asked_first else (row, other[1])
        filters, codes = asked.get("filters", []), answer.get("codes", [])
        if is_about:
            times = int(rows.ts[asked_row]), int(rows.ts[answer_row])
            for (name, options), code in zip(filters, codes, strict=False):
                if code >= 128:
                    refused.append((answer_row, name, code))
                elif code < 3:
                    found.begin(session, name, answer_row, code, options, times)
        else:
            kept = [one for one, code in zip(filters, codes, strict=False) if code >= 128]
            found.restore(session, kept)
    return _table(rows, sessions, gaps, flows, found.all()), refused


class _Spans:
    # Of (session, filter): [row, QoS, options, begin, end]; end None while it goes on.
    def __init__(self):
        self._active = {}
        self._done = []
        self._ended = {}

    def begin(self, session, name, row, qos, options, times):
        key = (session, name)
        asked, granted = times
        before = self._active.get(key)
        if before is not None:
            if (before[1], before[2]) == (qos, options):
                return
            before[4] = asked
            self._done.append((key, before))
        self._active[key] = [row, qos, options, granted, None]

    def end(self, session, filters, ts):
        for (name,) in filters:
            span = self._active.pop((session, name), None)
            if span is not None:
                span[4] = ts
                self._ended[session, name] = span
                self._done.append(((session, name), span))

    def restore(self, session, filters):
        for (name,) in filters:
            span = self._ended.pop((session, name), None)
            if span is not None and (session, name) not in self._active:
                self._done.remove(((session, name), span))
                span[4] = None
                self._active[session, name] = span

    def all(self):
        """[(client, session number, filter, row, QoS, options, begin, end), …]"""
        entries = [*self._done, *self._active.items()]
        return [(*session, name, *span) for (session, name), span in entries]


def _table(rows, sessions, gaps, flows, spans):
    lives = _Lives(rows, sessions, flows, {one[0] for one in spans})
    begins = np.array([one[3] for one in spans], np.int64)
    missing = _holes(rows, gaps, flows)
    of = [lives.of[one[:2]] for one in spans]
    client_gaps = [missing.get(one[0], ([], [])) for one in spans]
    ends = [life.end if one[7] is None else min(one[7], life.end) for one, life in zip(spans, of)]
    stuck = np.array([life.stuck_since for life in of], np.int64)
    full = np.array([life.full_since for life in of], np.int64)
    assumed = np.array([life.assumed_since for life in of], np.int64)
    columns = {
        "site": rows.strings("site", begins),
        "client_id": rows.strings("client_id", begins),
        "connection": rows.strings("connection", begins),
        "filter": [one[2] for one in spans],
        "prefix": [prefix(one[2]) for one in spans],
        "qos": [one[4] for one in spans],
        "session": [one[1] for one in spans],
        "begin": np.array([one[6] for one in spans], np.int64),
        "end": np.array(ends, np.int64),
        "last_seen": np.array([lives.last_seen[one[0]] for one in spans], np.int64),
        "no_local": [bool(one[5] & _NO_LOCAL) or life.is_bridge for one, life in zip(spans, of)],
        "as_published": [
            bool(one[5] & _AS_PUBLISHED) or life.is_bridge for one, life in zip(spans, of)
        ],
        "packet_bytes_max": pa.array([life.packet_bytes_max for life in of], pa.int64()),
        "online_begins": [life.online_begins for life in of],
        "online_ends": [life.online_ends for life in of],
        "assumed_since": pa.array(assumed, mask=assumed == FAR),
        "stuck_since": pa.array(stuck, mask=stuck == FAR),
        "full_since": pa.array(full, mask=full == FAR),
        "gap_begins": [one[0] for one in client_gaps],
        "gap_ends": [one[1] for one in client_gaps],
    }
    return table(columns, schemas.SUBSCRIPTIONS)


def _holes(rows, gaps, flows):
    # {client: (begins, ends)} of bytes that are missing; what a client acknowledges and
    # was not seen was missed as well.
    found = gaps.times(rows)
    stray = flows.row[(flows.flow < 0) & np.isin(flows.kind, (PUBACK, PUBREC))]
    stray = stray[rows.direction[stray] == 0]
    for client, ts in zip(rows.client[stray].tolist(), rows.ts[stray].tolist(), strict=True):
        begins, ends = found.setdefault(client, ([], []))
        begins.append(ts)
        ends.append(ts)
    return found


class _Life:
    # One session: until when it lasted, when its client was there.
    def __init__(self):
        self.end = FAR
        self.online_begins, self.online_ends = [], []
        self.is_bridge = False
        self.packet_bytes_max = None
        self.receive_max = FAR
        self.stuck_since = FAR
        self.full_since = FAR
        self.assumed_since = FAR


class _Lives:
    """All sessions of these clients: `of[client, number]`; `last_seen[client]` is its last
    packet."""

    def __init__(self, rows, sessions, flows, clients):
        self.of = {}
        chosen = np.zeros(int(rows.client.max(initial=-1)) + 1, bool)
        chosen[list(clients)] = True
        mine = np.flatnonzero(chosen[rows.client_of])
        last = np.zeros(int(rows.client.max(initial=-1)) + 1, np.int64)
        np.maximum.at(last, rows.client, rows.ts)
        self.last_seen = last.tolist()
        lapse = sessions.lapse.tolist()
        client_of, number = rows.client_of.tolist(), sessions.number.tolist()
        for one in mine[~sessions.is_refused[mine]].tolist():
            life = self.of.setdefault((client_of[one], number[one]), _Life())
            # The session's last connection decides when it is over.
            life.end = min(lapse[one], self.last_seen[client_of[one]])
            before = self.of.get((client_of[one], number[one] - 1))
            if before is not None:
                before.end = min(before.end, int(rows.start_of[one]))
            self._connect(life, one, rows, sessions)
        for one in mine.tolist():
            self.of.setdefault((client_of[one], number[one]), _Life())
        self._stuck(rows, sessions, flows, chosen)

    @staticmethod
    def _connect(life, one, rows, sessions):
        if life.online_ends and sessions.level[one] == 3:
            life.assumed_since = min(life.assumed_since, life.online_ends[-1])
        begin = sessions.answer_row[one]
        begin = rows.ts[begin] if begin >= 0 else rows.start_of[one]
        life.online_begins.append(int(begin))
        life.online_ends.append(max(int(begin), int(sessions.end[one])))
        hello = sessions.hello[one] or {}
        life.is_bridge |= bool(hello.get("is_bridge"))
        life.receive_max = min(life.receive_max, int(sessions.receive_max[one, 0]) or FAR)
        limit = hello.get("maximum_packet_bytes")
        if limit is not None:
            life.packet_bytes_max = min(limit, life.packet_bytes_max or limit)

    def _stuck(self, rows, sessions, flows, chosen):
        # Deliveries without their last acknowledgement: what comes behind may have to wait.
        sent = (rows.direction[flows.publish_row] == 1) & ~flows.is_complete & flows.is_known
        row = flows.publish_row[sent]
        row = row[chosen[rows.client[row]]]
        connection = rows.connection[row]
        entries = (rows.client[row], sessions.number[connection], rows.ts[row])
        waiting: dict[tuple, list] = {}
        for client, number, ts in zip(*(entry.tolist() for entry in entries), strict=True):
            waiting.setdefault((client, number), []).append(ts)
        for key, times in waiting.items():
            life = self.of[key]
            life.stuck_since = min(times)
            if len(times) >= life.receive_max:
                life.full_since = sorted(times)[life.receive_max - 1]
