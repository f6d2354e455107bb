"""What an operator should know that breaks no statement: devices in trouble, and what a
capture cannot show.

Each row says how sure it is and why (docs/reference/fleet-verdicts.md).  Rows about the `capture`
accuse nobody: they say why less could be judged.
"""

import numpy as np

from .. import schemas
from ..columns import by_value, over, table
from .messages import is_early
from .rows import FAR, TYPES
from .rules import FINDINGS, NO_TROUBLE, words
from .sessions import allowed_silence_us

_SERIES = 3  # refusals, or take-overs, that make a series
_TAKE_OVER_US = 2_000_000  # from a CONNECT to the end of the connection that it replaces
_SWAPPED_US = 5_000  # its end may be recorded so much before the CONNECT
_NEXT_US = 60_000_000  # between two take-overs of one series
_CLOSING_US = 5_000_000  # a living client closes its side within this time
_GOODBYES = [TYPES[name] for name in ("DISCONNECT", "TCP_FIN", "TCP_RESET")]
_UNANSWERED_US = 20_000_000  # longer than any broker takes
_TAKEN_OVER, _KEEP_ALIVE_TIMEOUT = 0x8E, 0x8D  # reason codes of level 5


def found(entries, **columns):
    """`schemas.FINDINGS` of some dicts: a `rule` of FINDINGS and what the columns hold.

    `columns` are those that are there for all of them.
    """
    told = {name: [one.get(name) for one in entries] for name in schemas.FINDINGS.names}
    told["finding"] = [one["rule"].partition(".")[0] for one in entries]
    for name in ("about", "sure", "why"):
        told[name] = [getattr(FINDINGS[one["rule"]], name) for one in entries]
    return table(told | columns, schemas.FINDINGS)


class _Found:
    # The findings so far; connections are numbers in `Rows`.
    def __init__(self, rows):
        self._rows = rows
        self._entries: list[dict] = []

    def add(self, rule, connection, detail, first=None, last=None, count=1, topic=None):
        first = self._rows.start_of[connection] if first is None else first
        last = self._rows.end_of[connection] if last is None else last
        times = {"first_seen": int(first), "last_seen": int(last)}
        entry = {"rule": rule, "connection": connection, "detail": detail, **times}
        self._entries.append(entry | {"count": count, "topic": topic})

    def add_groups(self, rule, at, keys, detail):
        # One finding for all rows `at` with the same key, which ends with the topic; the text is
        # `detail(row)` of the first.
        keys = list(zip(*keys, strict=True))
        for key, places in by_value(keys, range(len(keys))).items():
            members = at[places]
            first, last = self._rows.ts[members].min(), self._rows.ts[members].max()
            where, text = self._rows.connection[members[0]], detail(members[0])
            self.add(rule, where, text, first, last, len(members), key[-1])

    def table(self):
        first = self._rows.first_of[[one["connection"] for one in self._entries]]
        named = self._rows.columns(("site", "client_id", "connection"), first)
        return found(self._entries, **named)


def findings(rows, sessions, flows, clock, refused, copies):
    """The `findings` table of all that one client's packets show.

    `refused` are (row, filter, code) of subscriptions, `copies` (connection, text) of
    connections that were captured twice.
    """
    ends = _Ends(rows, sessions)
    found = _Found(rows)
    _refused_connects(rows, sessions, found)
    _silent_for_good(rows, sessions, ends, found)
    _conflicts(rows, sessions, ends, found)
    _sockets_left(rows, ends, found)
    _sessions_not_kept(rows, sessions, flows, found)
    _disconnected(rows, found)
    _refused_publishes(rows, flows, found)
    _never_acknowledged(rows, sessions, flows, ends, found)
    for row, name, code in refused:
        text = "filter %s, code %s" % (name, words(code))
        ts = rows.ts[row]
        found.add("refused_subscription", rows.connection[row], text, ts, ts)
    _capture(rows, sessions, ends, found)
    _clock_set(rows, clock, found)
    for connection, text in copies:
        found.add("captured_twice", connection, text)
    return found.table()


class _Ends:
    # Arrays by connection: when the client was last heard, and how the connection ended.
    # `closed` is the time of the first goodbye (FAR: none), `closer` the side that said it.
    def __init__(self, rows, sessions):
        count = len(rows.client_of)
        self._rows = rows
        self.heard = np.full(count, -1)  # last packet of the client
        mine = np.flatnonzero(rows.is_packet & (rows.direction == 0))
        self.heard[rows.connection[mine]] = rows.ts[mine]
        self.said = rows.connections_with(mine)  # has the client said anything
        self.closed = sessions.at_goodbye(rows.ts, FAR)
        self.closer = sessions.at_goodbye(rows.direction, -1)
        self.reason = sessions.at_goodbye(rows.reason_code, -1)

    def address(self, connection):
        """The client's address without its port, or the whole name."""
        rows = self._rows
        name = rows.strings("connection", rows.first_of[[connection]])[0].as_py()
        return name.rpartition("-")[0].rpartition(":")[0]


def _runs(rows, is_in):
    # Neighbouring connections of one client for which `is_in` holds.
    at = np.flatnonzero(is_in)
    is_apart = (np.diff(at) != 1) | (np.diff(rows.client_of[at]) != 0)
    return np.split(at, np.flatnonzero(is_apart) + 1)


def _refused_connects(rows, sessions, found):
    for run in _runs(rows, sessions.is_refused):
        if len(run) >= _SERIES:
            codes = sorted({sessions.answer[one].get("return_code", 0) for one in run})
            text = "return code %s" % ", ".join(words(code) for code in codes)
            last = rows.end_of[run[-1]]
            found.add("refused_connects", run[0], text, last=last, count=len(run))


def _silent_for_good(rows, sessions, ends, found):
    silence = ends.closed - ends.heard
    is_silent = silence > allowed_silence_us(sessions.keep_alive_s)
    is_silent |= ends.reason == _KEEP_ALIVE_TIMEOUT
    is_silent &= (sessions.keep_alive_s > 0) & (ends.closer == 1) & ends.said
    # The client's FIN proves that none of its bytes are missing.
    is_sure = ends.reason == _KEEP_ALIVE_TIMEOUT
    fins = (rows.kind == TYPES["TCP_FIN"]) & (rows.direction == 0)
    is_sure[rows.connection[fins]] = True
    is_gap = rows.kind == TYPES["GAP"]
    for one in np.flatnonzero(is_silent).tolist():
        heard = ends.heard[one]
        its = slice(*rows.first_of[one : one + 2])
        if not (is_gap[its] & (rows.ts[its] >= heard)).any():
            limits = (silence[one] / 1e6, sessions.keep_alive_s[one])
            rule = "silent_for_good.told" if is_sure[one] else "silent_for_good"
            text = "silent for %.1f s, keep alive %d s" % limits
            found.add(rule, one, text, heard, ends.closed[one])


def _conflicts(rows, sessions, ends, found):
    # A take-over: the broker ends a connection because the client's next one began, and the
    # client was still alive, as it closed its own side at once.  A link that broke before that
    # is none.
    is_taken = np.zeros(len(rows.client_of), bool)
    later = ends.closed[:-1] - rows.start_of[1:]
    near = (later > -_SWAPPED_US) & (later < _TAKE_OVER_US)
    near &= (np.diff(rows.client_of) == 0) & (ends.closer[:-1] == 1)
    byes = np.flatnonzero(np.isin(rows.kind, _GOODBYES) & (rows.direction == 0))
    own = over(np.minimum, len(is_taken), rows.connection[byes], rows.ts[byes], FAR)
    near &= ~sessions.is_refused[1:] & (own - _CLOSING_US < ends.closed)[:-1]
    is_taken[:-1] = near
    is_told = is_taken & (ends.reason == _TAKEN_OVER)
    fights = []
    for run in _runs(rows, is_taken):
        # A long pause ends a series.
        pauses = rows.start_of[run[1:] + 1] - rows.start_of[run[1:]]
        fights += np.split(run, np.flatnonzero(pauses > _NEXT_US) + 1)
    for series in fights:
        if len(series) < _SERIES:
            continue
        both = [*series, series[-1] + 1]
        places = {ends.address(one) for one in both}
        is_sure = len(places) > 1 or is_told[series].any()
        rule = "client_id_conflict.told" if is_sure else "client_id_conflict"
        text = "%d take-overs, from %s" % (len(series), ", ".join(sorted(places)))
        found.add(rule, both[0], text, last=rows.end_of[both[-1]], count=len(series))


def _sockets_left(rows, ends, found):
    # Both sides opened the connection, and neither sent a byte.
    tcp = [TYPES[name] for name in ("TCP_OPEN", "TCP_FIN", "TCP_RESET")]
    is_quiet = ~rows.connections_with(~np.isin(rows.kind, tcp))
    for one in np.flatnonzero(rows.is_opened(0) & rows.is_opened(1) & is_quiet).tolist():
        rule = "socket_left.closed" if ends.closed[one] < FAR else "socket_left"
        found.add(rule, one, "from %s" % ends.address(one))


def _sessions_not_kept(rows, sessions, flows, found):
    # A session has nothing to keep if the client subscribed to nothing and got nothing, except
    # the QoS 2 ids that the broker answered, which some brokers do not keep.
    asks = (rows.kind == TYPES["PUBLISH"]) & (rows.direction == 1)
    asks |= rows.kind == TYPES["SUBSCRIBE"]
    holds = np.zeros(len(rows.client_of) + 1, np.int64)
    holds[1:][rows.connection[asks]] = 1
    is_held = (flows.stage_row["pubrec"] < FAR) & ~flows.is_complete & flows.is_known
    holds[1:][rows.connection[flows.publish_row[is_held]]] = 1
    held = np.cumsum(holds)
    first = np.searchsorted(rows.client_of, rows.client_of)
    at = np.flatnonzero(sessions.is_forgotten)
    at = at[held[at] > held[first[at]]]
    _, begin, size = np.unique(rows.client_of[at], return_index=True, return_counts=True)
    for one, last, count in zip(at[begin], at[begin + size - 1], size.tolist(), strict=True):
        text = "a session that was to be kept"
        found.add("session_not_kept", one, text, last=rows.start_of[last], count=count)


def _disconnected(rows, found):
    # Reasons of DISCONNECT at level 5: one row for each client and code.
    is_told = (rows.kind == TYPES["DISCONNECT"]) & (rows.reason_code >= 128)
    is_told &= ~np.isin(rows.reason_code, NO_TROUBLE)
    for side, rule in enumerate(("client_complains", "disconnected")):
        at = np.flatnonzero(is_told & (rows.direction == side))
        keys = rows.client[at], rows.reason_code[at], [None] * len(at)
        found.add_groups(rule, at, keys, lambda row: _reason(rows, row))


def _reason(rows, row):
    return "reason code %s" % words(rows.reason_code[row])


def _refused_publishes(rows, flows, found):
    # A broker refused a PUBLISH of a client, or a client one of the broker.
    is_refused = np.flatnonzero(flows.is_refused)
    at = flows.answer_row[is_refused]
    topics = rows.strings("topic", flows.publish_row[is_refused]).to_pylist()
    keys = rows.client[at], rows.reason_code[at], topics
    found.add_groups("refused_publish", at, keys, lambda row: _reason(rows, row))


def _never_acknowledged(rows, sessions, flows, ends, found):
    # The client stayed connected for long, and a later PUBLISH was answered there.
    publish, where = flows.publish_row, rows.connection[flows.publish_row]
    mine = rows.direction[publish] == 0
    known = np.flatnonzero(mine & (flows.answer_row < FAR))
    sent = rows.ts[publish[known]]
    answered = over(np.maximum, len(rows.client_of), where[known], sent, -FAR)
    since = rows.ts[flows.last_row]
    waits = mine & (flows.answer_row == FAR) & flows.is_known & (answered[where] > since)
    waits &= (ends.heard[where] - since >= _UNANSWERED_US) & ~flows.is_complete
    waits &= (rows.connection[flows.last_row] == where) & ~flows.is_reused
    at = publish[waits]
    # The capture of a stream may begin in the middle of the answer.
    at = at[~is_early(rows, sessions, at)]
    keys = rows.connection[at], rows.strings("topic", at).to_pylist()
    text = "packet id %d"
    found.add_groups("never_acknowledged", at, keys, lambda row: text % rows.packet_id[row])


def _capture(rows, sessions, ends, found):
    count = len(rows.client_of)
    # JSON lines of a subscriber always have one direction only.
    is_captured = rows.connections_with(rows.is_captured)
    for one in np.flatnonzero(sessions.is_one_way).tolist():
        text = ("only what the server sent", "only what the client sent")[int(ends.said[one])]
        found.add("one_direction", one, text)
    is_begun = rows.connections_with(rows.is_packet) & is_captured & (sessions.hello.row < 0)
    for one in np.flatnonzero(is_begun).tolist():
        found.add("began_before", one, "of what it did before nothing is judged")
    is_gap = np.flatnonzero(rows.kind == TYPES["GAP"])
    places = np.bincount(rows.connection[is_gap], minlength=count)
    missing = np.bincount(rows.connection[is_gap], rows.payload_bytes[is_gap], count)
    for one in np.flatnonzero(places).tolist():
        found.add("bytes_missing", one, "%d bytes are missing" % missing[one], count=places[one])


def _clock_set(rows, clock, found):
    for before, row in zip(clock.before_us.tolist(), clock.back.tolist(), strict=True):
        text = "set back by %.1f s" % ((before - rows.ts[row]) / 1e6)
        found.add("clock_set.back", rows.connection[row], text, rows.ts[row], before)
    for row, silence in zip(clock.forward.tolist(), clock.forward_us.tolist(), strict=True):
        text, ts = "%.0f s passed without a packet" % (silence / 1e6), rows.ts[row]
        found.add("clock_set", rows.connection[row], text, ts - silence, ts)
