"""What each client had subscribed to, from when to when, and how it could be reached.

A subscription begins with its SUBACK and ends with UNSUBSCRIBE or with the session.  Of a
session of which no SUBSCRIBE was captured each topic that came often counts as one, from
its first delivery on a connection to the last (`is_implied`).
"""

from itertools import chain
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..columns import begins, in_runs, over, runs, table
from ..schemas import TS
from .messages import GRACE_US, PUBACK, PUBLISH, PUBREC
from .quota import Quota
from .rows import FAR, TYPES, running_max
from .spans import HEADER_BYTES
from .told import parsed

_SUBSCRIBE, _SUBACK = TYPES["SUBSCRIBE"], TYPES["SUBACK"]
_UNSUBSCRIBE, _UNSUBACK = TYPES["UNSUBSCRIBE"], TYPES["UNSUBACK"]
# Subscription options of level 5 (§3.8.3.1); below it their bits are 0.
_NO_LOCAL, _AS_PUBLISHED = 4, 8
PAUSE_US = 1_000_000  # if none is delivered for so long, nothing waits in the broker
OFTEN = 10  # so many deliveries imply a subscription that was not captured


def subscriptions(rows, sessions, gaps, flows, clock):
    """-> (the `schemas.SUBSCRIPTIONS` table, [(row, filter, code)] of those refused)."""
    at = np.flatnonzero(np.isin(rows.kind, [_SUBSCRIBE, _SUBACK, _UNSUBSCRIBE, _UNSUBACK]))
    found, refused = _Spans(), []
    # The request and its answer, in any order in the capture.
    waiting: dict[tuple, SimpleNamespace] = {}
    for packet in _packets(rows, sessions, at):
        other = waiting.pop(packet.exchange, None)
        if packet.kind == _UNSUBSCRIBE:
            # From here on nothing has to be passed on, unless the broker refuses the request.
            found.end(packet.session, packet.detail.get("filters", []), packet.ts)
        if other is None or other.kind == packet.kind:
            waiting[packet.exchange] = packet
            continue
        is_asking = packet.kind in (_SUBSCRIBE, _UNSUBSCRIBE)
        asked, answer = (packet, other) if is_asking else (other, packet)
        pairs = zip(asked.detail.get("filters", []), answer.detail.get("codes", []), strict=False)
        if asked.kind == _UNSUBSCRIBE:
            found.restore(packet.session, [one for one, code in pairs if code >= 128])
            continue
        times = asked.ts, answer.ts
        for (name, options), code in pairs:
            if code >= 128:
                refused.append((answer.row, name, code))
            elif code < 3:
                found.begin(packet.session, name, answer.row, code, options, times)
    missing = _holes(rows, gaps, flows, clock)
    implied = _implied(rows, sessions, at)
    return _table(rows, sessions, flows, missing, found.all, implied), refused


def _packets(rows, sessions, at):
    # Each SUBSCRIBE, UNSUBSCRIBE and answer; a request and its answer have one `exchange`.  If the
    # level was not captured, the fields were read as those of level 4.
    at = at[(rows.level[at] == 4) | (rows.numbers("level", at) > 0)]
    where, details = rows.connection[at], parsed(rows.strings("detail", at))
    both = rows.client[at], sessions.number[where], where, rows.packet_id[at]
    columns = [*(one.tolist() for one in (at, rows.kind[at], rows.ts[at], *both)), details]
    for row, kind, ts, *session, connection, packet_id, detail in zip(*columns, strict=True):
        exchange = connection, packet_id, kind in (_SUBSCRIBE, _SUBACK)
        told = {"session": tuple(session), "exchange": exchange, "detail": detail}
        yield SimpleNamespace(row=row, kind=kind, ts=ts, **told)


def _implied(rows, sessions, asked):
    # [(client, session number, topic, row, QoS, options, begin, end), …] as `_Spans.all`, of
    # sessions without one of the rows `asked`.
    width = int(sessions.number.max(initial=0)) + 1
    session = rows.client_of * width + sessions.number
    told = np.isin(session, session[rows.connection[asked]])
    is_wanted = (rows.kind == PUBLISH) & (rows.direction == 1) & (rows.qos < 3)
    at = np.flatnonzero(is_wanted & rows.is_captured & (rows.flags & 1 == 0))
    at = at[~told[rows.connection[at]] & (rows.topic[at] >= 0)]
    order = np.lexsort((at, rows.topic[at], rows.connection[at]))
    at = at[order]
    first, last = runs(rows.connection[at], rows.topic[at])
    qos = np.maximum.reduceat(rows.qos[at], first)
    often = (last - first + 1 >= OFTEN) & (qos > 0)
    first, last, qos = at[first[often]], at[last[often]], qos[often]
    names = rows.topics.take(pa.array(rows.topic[first])).to_pylist()
    where = rows.connection[first]
    numbers = (rows.client[first], sessions.number[where], first, qos)
    columns = [one.tolist() for one in (*numbers, rows.ts[first], rows.ts[last])]
    options = _NO_LOCAL  # it may be a bridge
    return [
        (client, number, name, row, most, options, begin, end)
        for client, number, row, most, begin, end, name in zip(*columns, names, strict=True)
        if name
    ]


class _Spans:
    # [client, session number, filter, row, QoS, options, begin, end]; end is FAR while it goes on.
    def __init__(self):
        self.all, self._active, self._ended = [], {}, {}

    def begin(self, session, name, row, qos, options, times):
        key, (asked, granted) = (session, name), times
        before = self._active.get(key)
        if before is not None:
            if before[4:6] == [qos, options]:
                return
            before[-1] = asked
        self._active[key] = [*session, name, row, qos, options, granted, FAR]
        self.all.append(self._active[key])

    def end(self, session, filters, ts):
        for (name,) in filters:
            span = self._active.pop((session, name), None)
            if span is not None:
                span[-1] = ts
                self._ended[session, name] = span

    def restore(self, session, filters):
        for (name,) in filters:
            span = self._ended.pop((session, name), None)
            if span is not None and (session, name) not in self._active:
                span[-1] = FAR
                self._active[session, name] = span


def _table(rows, sessions, flows, missing, told, implied):
    # One entry for each span; what is the session's own comes from `_Lives`, in columns.
    spans = [*told, *implied]
    filters = [one[2] for one in spans]
    numbers = np.array([[*one[:2], *one[3:]] for one in spans], np.int64).reshape(-1, 7).T
    client, number, row, qos, options, begin, end = numbers
    lives = _Lives(rows, sessions, flows)
    of = lives.places(client, number)
    is_bridge = lives.is_bridge[of]
    columns = {
        **rows.columns(("site", "client_id", "connection"), row),
        **{"filter": filters, "qos": qos, "session": number, "begin": begin},
        "server": sessions.servers_at(row),
        "end": np.minimum(end, lives.end[of]),
        "last_seen": lives.last_seen[client],
        "no_local": (options & _NO_LOCAL > 0) | is_bridge,
        "as_published": (options & _AS_PUBLISHED > 0) | is_bridge,
        "is_implied": np.arange(len(spans)) >= len(told),
    }
    for name in ("online_begins", "online_ends", "asked", "busy_begins", "busy_ends"):
        columns[name] = getattr(lives, name).take(pa.array(of))
    for name in ("packet_bytes_max", "assumed_since", "stuck_since", "full_since"):
        values = getattr(lives, name)[of]
        if name == "packet_bytes_max" and implied:
            # The client's limit was not captured, only what it took: the limit may be larger.
            at = np.flatnonzero((rows.kind == PUBLISH) & (rows.direction == 1))
            both = rows.connection[at], rows.packet_bytes[at] + HEADER_BYTES + 1
            largest = over(np.maximum, len(rows.client_of), *both, HEADER_BYTES + 1)
            values[len(told) :] = largest[rows.connection[row[len(told) :]]]
        columns[name] = pa.array(values, mask=values == FAR)
    for place, name in enumerate(("gap_begins", "gap_ends")):
        lists = [missing[one][place] if one in missing else () for one in client.tolist()]
        columns[name] = _lists(list(map(len, lists)), np.array(list(chain(*lists)), np.int64))
    return table(columns, schemas.SUBSCRIPTIONS)


def _lists(sizes, times):
    # A column of lists of so many times.
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(times, pa.int64()).cast(TS))


def _holes(rows, gaps, flows, clock):
    # -> {client: (begins, ends)} of missing bytes.  Also missing: what a client acknowledges and
    # the capture lacks, messages without a known topic, and times that the capture has twice.
    found: dict = {}
    stray = flows.row[(flows.flow < 0) & np.isin(flows.kind, (PUBACK, PUBREC))]
    # Deliveries by an alias that was set before the capture, or in missing bytes.
    is_empty = np.append(pc.equal(rows.topics, "").to_numpy(zero_copy_only=False), True)
    is_nameless = (rows.kind == PUBLISH) & (rows.direction == 1) & rows.is_captured
    is_nameless &= is_empty[rows.topic] & (rows.level == 5)
    stray = np.append(stray[rows.direction[stray] == 0], np.flatnonzero(is_nameless))
    ts = rows.ts[stray].tolist()
    strays = zip(rows.client[stray].tolist(), ts, ts, strict=True)
    for client, *times in (*gaps.times(rows), *clock.holes(), *strays):
        for known, one in zip(found.setdefault(client, ([], [])), times, strict=True):
            known.append(one)
    return found


class _Lives:
    """All sessions of these clients, in columns: until when they lasted (`end`), when their
    client was there, what it takes.  FAR: never, or any number.

    Of a session all connections that were not refused follow each other; the last entry is
    for those that have none.  `last_seen[client]` is its last packet.
    """

    def __init__(self, rows, sessions, flows):
        self._keep = keep = np.flatnonzero(~sessions.is_refused)
        client, number = rows.client_of[keep], sessions.number[keep]
        self._width = int(number.max(initial=0)) + 2
        key = client * self._width + number
        self._is_first = begins(key)
        self._first, last = runs(key)
        self._keys = key[self._first]
        self._of = self.places(rows.client_of, sessions.number)  # each connection
        at = rows.connections_of[:-1]
        self.last_seen = np.maximum.reduceat(rows.end_of, at) if len(at) else rows.end_of
        # A session ends with its last connection, or when the next one begins.
        first = self._first
        end = np.minimum(sessions.lapse[keep[last]], self.last_seen[client[last]])
        follows = np.flatnonzero(client[first[1:]] == client[first[:-1]])
        end[follows] = np.minimum(end[follows], rows.start_of[keep[first[follows + 1]]])
        self.end = np.append(end, FAR)
        self._times(rows, sessions)
        bridges = sessions.hello.flags("is_bridge")[keep]
        self.is_bridge = self._over(np.logical_or, bridges, False)
        limits = sessions.hello.numbers("maximum_packet_bytes")[keep]
        self.packet_bytes_max = self._over(np.minimum, np.where(limits > 0, limits, FAR))
        takes = sessions.receive_max[keep, 0]
        self._receive_max = self._over(np.minimum, np.where(takes > 0, takes, FAR))
        self._asked(rows)
        self._stuck(rows, flows)
        self._busy(rows, sessions, flows)

    def places(self, client, number):
        """The entries of these sessions."""
        key = client * self._width + number
        place = np.searchsorted(self._keys, key)
        is_there = np.append(self._keys, -1)[place] == key
        return np.where(is_there, place, len(self._keys))

    def _over(self, function, values, none=FAR):
        # Over the connections of each session.
        found = function.reduceat(values, self._first) if len(values) else values
        return np.append(found, none).astype(values.dtype)

    def _times(self, rows, sessions):
        answer = sessions.answer.row[self._keep]
        begin = rows.start_of[self._keep].copy()
        begin[answer >= 0] = rows.ts[answer[answer >= 0]]
        end = np.maximum(begin, sessions.end[self._keep])
        sizes = np.append(np.diff(self._first, append=len(begin)), 0)
        self.online_begins, self.online_ends = _lists(sizes, begin), _lists(sizes, end)
        again = ~self._is_first & (sessions.level[self._keep] == 3)
        before = np.where(again, np.concatenate(([FAR], end[:-1]))[: len(end)], FAR)
        self.assumed_since = self._over(np.minimum, before)

    def _asked(self, rows):
        # Messages from the broker's store come behind one of these.
        def of(at):
            return self._of[rows.connection[at]]

        is_kept = (rows.kind == PUBLISH) & (rows.direction == 1) & (rows.flags & 1 != 0)
        count = len(self._keys) + 1
        has_kept = np.bincount(of(np.flatnonzero(is_kept)), minlength=count) > 0
        at = np.flatnonzero(rows.kind == _SUBSCRIBE) if has_kept.any() else np.zeros(0, np.int64)
        at = at[has_kept[of(at)]]
        at = at[np.argsort(of(at), kind="stable")]
        self.asked = _lists(np.bincount(of(at), minlength=count), rows.ts[at])

    def _stuck(self, rows, flows):
        # Deliveries without their last acknowledgement: later messages may have to wait.
        sent = (rows.direction[flows.publish_row] == 1) & ~flows.is_complete & flows.is_known
        row = flows.publish_row[sent]
        of = self._of[rows.connection[row]]
        order = np.lexsort((rows.ts[row], of))
        of, ts = of[order], rows.ts[row][order]
        rank = 1 + in_runs(of)
        self.stuck_since, self.full_since = np.full((2, len(self._receive_max)), FAR)
        for since, limit in ((self.stuck_since, 1), (self.full_since, self._receive_max[of])):
            since[of[rank == limit]] = ts[rank == limit]

    def _busy(self, rows, sessions, flows):
        # Times in which a client had deliveries to answer, with pauses too short for a broker to
        # send what waits.  Times too short to lose anything are left out.
        sent = Quota(rows, flows)
        at = np.flatnonzero(sent.direction == 1)
        connection, begin = sent.connection[at], sent.begin[at]
        end = np.maximum(np.minimum(sent.end[at], sessions.end[connection]), begin)
        of = self._of[connection]
        order = np.lexsort((begin, of))
        of, begin, end = of[order], begin[order], end[order]
        so_far = running_max(of, end)
        pauses = np.cumsum(begin[1:] >= so_far[:-1] + PAUSE_US)
        first, last = runs(of, np.append(0, pauses)[: len(of)])
        is_long = so_far[last] - begin[first] >= GRACE_US
        first, last = first[is_long], last[is_long]
        sizes = np.bincount(of[first], minlength=len(self._keys) + 1)
        self.busy_begins = _lists(sizes, begin[first])
        self.busy_ends = _lists(sizes, so_far[last])
