"""What an operator should know that breaks no statement: devices in trouble, and what a
capture cannot show.

Each row says how sure it is and why (docs/reference/fleet-verdicts.md).  Rows about the `capture`
accuse nobody: they say why less could be judged.
"""

import numpy as np

from .. import schemas
from . import reasons
from .rows import FAR, TYPES, any_of
from .sessions import allowed_silence_us, table

_SERIES = 3  # refusals, or take-overs, that make a series
_TAKE_OVER_US = 2_000_000  # from a CONNECT to the end of the connection that it replaces
_SWAPPED_US = 5_000  # and by so much its end may seem to come first, from unordered frames
_NEXT_US = 60_000_000  # between two take-overs of one series
_CLOSING_US = 5_000_000  # a living client closes its side that soon
_GOODBYES = [TYPES[name] for name in ("DISCONNECT", "TCP_FIN", "TCP_RESET")]
_UNANSWERED_US = 20_000_000  # longer than any broker takes
_TAKEN_OVER, _KEEP_ALIVE_TIMEOUT = 0x8E, 0x8D  # reason codes of level 5


_NAMES = (
    *("finding", "about", "connection", "topic", "first_seen", "last_seen", "count"),
    *("sure", "why", "detail"),
)


class _Found:
    # Rows of the table; `connection` is a number in `Rows`, -1 for none.
    def __init__(self, rows):
        self._rows = rows
        self._entries: list[tuple] = []

    def add(self, finding, connection, first, last, sure, why, detail, count=1, topic=None):
        about = _ABOUT[finding]
        entry = (finding, about, connection, topic, first, last, count, sure, why, detail)
        self._entries.append(entry)

    def table(self):
        columns: dict = {
            name: [entry[place] for entry in self._entries] for place, name in enumerate(_NAMES)
        }
        rows = self._rows
        first = rows.first_of[np.array(columns["connection"], np.int64)]
        columns.update(rows.columns(("site", "client_id", "connection"), first))
        for name in ("first_seen", "last_seen"):
            columns[name] = np.array(columns[name], np.int64)
        return table(columns, schemas.FINDINGS)


_ABOUT = {
    "refused_connects": "client",
    "silent_for_good": "client",
    "client_id_conflict": "client",
    "socket_left": "client",
    "disconnected": "client",
    "client_complains": "broker",
    "never_acknowledged": "broker",
    "refused_publish": "client",
    "refused_subscription": "client",
    "session_not_kept": "broker",
    "captured_twice": "capture",
    "one_direction": "capture",
    "began_before": "capture",
    "bytes_missing": "capture",
    "clock_set": "capture",
}


def findings(rows, sessions, flows, clock, refused, copies):
    """The `findings` table of all that one client's packets show.

    `refused` are (row, filter, code) of subscriptions, `copies` (connection, text) of
    connections that were captured twice.
    """
    found = _Found(rows)
    ends = _Ends(rows)
    _refused_connects(rows, sessions, ends, found)
    _silent_for_good(rows, sessions, ends, found)
    _conflicts(rows, sessions, ends, found)
    _sockets_left(rows, ends, found)
    _sessions_not_kept(rows, sessions, flows, ends, found)
    _disconnected(rows, found)
    _refused_publishes(rows, flows, found)
    _never_acknowledged(rows, flows, ends, found)
    _refused_subscriptions(rows, refused, found)
    _capture(rows, sessions, ends, found)
    _clock_set(rows, clock, found)
    for connection, text in copies:
        first, last = ends.begin[connection], ends.last[connection]
        why = "every packet of another connection of this client is there a second time"
        found.add("captured_twice", connection, first, last, "proved", why, text)
    return found.table()


class _Ends:
    # When each connection was last heard of, and how it ended: arrays by connection.
    # `closed` is the time of its first goodbye (FAR without one), `closer` who said it.
    def __init__(self, rows):
        count = len(rows.client_of)
        self._rows = rows
        self.begin = rows.start_of
        self.last = rows.end_of
        is_packet = rows.kind < len(schemas.PACKET_TYPES)
        self.has_packets = np.zeros(count, bool)
        self.has_packets[rows.connection[np.flatnonzero(is_packet)]] = True
        self.heard = np.full(count, -1)  # last packet of the client
        mine = np.flatnonzero(is_packet & (rows.direction == 0))
        self.heard[rows.connection[mine]] = rows.ts[mine]
        self.said = np.zeros(count, bool)  # has the client said anything
        self.said[rows.connection[mine]] = True
        at = np.flatnonzero(any_of(rows.kind, _GOODBYES))
        self._goodbyes = at
        at = at[np.diff(rows.connection[at], prepend=-1) != 0]
        where = rows.connection[at]
        self.closed, self.closer = np.full(count, FAR), np.full(count, -1)
        self.closed[where], self.closer[where] = rows.ts[at], rows.direction[at]
        self.reason = np.full(count, -1)
        self.reason[where] = rows.reason_code[at]

    def is_closed_by_client(self, connection, until):
        """Has the client closed its side as well, before that time?"""
        rows, at = self._rows, self._goodbyes
        low, high = np.searchsorted(rows.connection[at], [connection, connection + 1])
        mine = at[low:high]
        return bool(((rows.direction[mine] == 0) & (rows.ts[mine] < until)).any())

    def address(self, connection):
        """The client's address without its port, or the whole name."""
        rows = self._rows
        name = rows.strings("connection", rows.first_of[[connection]])[0].as_py()
        return name.rpartition("-")[0].rpartition(":")[0]


def _runs(rows, is_in):
    # Lists of neighbouring connections of one client for which `is_in` holds.
    run: list[int] = []
    for one in np.flatnonzero(is_in).tolist():
        if run and (one != run[-1] + 1 or rows.client_of[one] != rows.client_of[run[-1]]):
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _refused_connects(rows, sessions, ends, found):
    for run in _runs(rows, sessions.is_refused):
        if len(run) < _SERIES:
            continue
        codes = sorted({sessions.answer[one].get("return_code", 0) for one in run})
        text = "return code %s" % ", ".join(reasons.words(code) for code in codes)
        first, last = ends.begin[run[0]], ends.last[run[-1]]
        why = "each CONNACK says so"
        found.add("refused_connects", run[0], first, last, "proved", why, text, len(run))


def _silent_for_good(rows, sessions, ends, found):
    silence = ends.closed - ends.heard
    is_silent = silence > allowed_silence_us(sessions.keep_alive_s)
    is_silent |= ends.reason == _KEEP_ALIVE_TIMEOUT
    is_silent &= (sessions.keep_alive_s > 0) & (ends.closer == 1) & ends.said
    # The client's FIN tells that nothing of it is missing.
    is_sure = ends.reason == _KEEP_ALIVE_TIMEOUT
    fins = (rows.kind == TYPES["TCP_FIN"]) & (rows.direction == 0)
    is_sure[rows.connection[fins]] = True
    for one in np.flatnonzero(is_silent).tolist():
        heard = ends.heard[one]
        if rows.touched_by_gap(one, heard):
            continue
        limits = (silence[one] / 1e6, sessions.keep_alive_s[one])
        text = "silent for %.1f s, keep alive %d s" % limits
        sure, why = _SILENT[bool(is_sure[one])]
        found.add("silent_for_good", one, heard, ends.closed[one], sure, why, text)


_SILENT = (
    (
        "likely",
        "the broker ended the connection after that silence; last packets of the client that were "
        "not captured look the same",
    ),
    ("proved", "the broker ended the connection after that silence"),
)


def _conflicts(rows, sessions, ends, found):
    # A connection is taken over when the broker ends it because the client's next one began
    # (a link that broke before that was not), and the client behind it was alive: it closed
    # its own side at once.
    is_taken = np.zeros(len(rows.client_of), bool)
    later = ends.closed[:-1] - ends.begin[1:]
    near = (later > -_SWAPPED_US) & (later < _TAKE_OVER_US)
    near &= (np.diff(rows.client_of) == 0) & (ends.closer[:-1] == 1)
    for one in np.flatnonzero(near & ~sessions.is_refused[1:]).tolist():
        is_taken[one] = ends.is_closed_by_client(one, ends.closed[one] + _CLOSING_US)
    is_told = is_taken & (ends.reason == _TAKEN_OVER)
    for run in _runs(rows, is_taken):
        for series in _near(run, ends):
            if len(series) < _SERIES:
                continue
            both = [*series, series[-1] + 1]
            places = {ends.address(one) for one in both}
            is_sure = len(places) > 1 or is_told[series].any()
            why = (
                "the connections come from several addresses, or the broker says so"
                if is_sure
                else "each new connection ends one that was alive; a client that opens a "
                "second one itself looks the same"
            )
            first, last = ends.begin[both[0]], ends.last[both[-1]]
            text = "%d take-overs, from %s" % (len(series), ", ".join(sorted(places)))
            sure = "proved" if is_sure else "likely"
            found.add("client_id_conflict", both[0], first, last, sure, why, text, len(series))


def _near(run, ends):
    # A run cut where a pause is too long for a fight.
    series = run[:1]
    for one in run[1:]:
        if ends.begin[one + 1] - ends.begin[one] > _NEXT_US:
            yield series
            series = []
        series.append(one)
    yield series


def _sockets_left(rows, ends, found):
    # Opened on both sides, and not one byte in any direction.
    count = len(rows.client_of)
    opened = [np.zeros(count, bool), np.zeros(count, bool)]
    for side in (0, 1):
        at = (rows.kind == TYPES["TCP_OPEN"]) & (rows.direction == side)
        opened[side][rows.connection[at]] = True
    is_quiet = np.ones(count, bool)
    tcp = [TYPES[name] for name in ("TCP_OPEN", "TCP_FIN", "TCP_RESET")]
    is_quiet[rows.connection[np.flatnonzero(~any_of(rows.kind, tcp))]] = False
    for one in np.flatnonzero(opened[0] & opened[1] & is_quiet).tolist():
        is_over = ends.closed[one] < FAR
        why = (
            "it was opened, and closed without a packet"
            if is_over
            else "its CONNECT may have come after the end of the capture"
        )
        sure = "proved" if is_over else "not_knowable"
        text = "from %s" % ends.address(one)
        found.add("socket_left", one, ends.begin[one], ends.last[one], sure, why, text)


def _sessions_not_kept(rows, sessions, flows, ends, found):
    # Of a client that has asked for nothing and was sent nothing there is nothing to keep but
    # the ids of QoS 2 that the broker has answered, and some brokers keep that not.
    asks = (rows.kind == TYPES["SUBSCRIBE"]) | (
        (rows.kind == TYPES["PUBLISH"]) & (rows.direction == 1)
    )
    holds = np.zeros(len(rows.client_of) + 1, np.int64)
    holds[1:][rows.connection[asks]] = 1
    is_held = (flows.stage_row["pubrec"] < FAR) & ~flows.is_complete
    holds[1:][rows.connection[flows.publish_row[is_held]]] = 1
    held = np.cumsum(holds)
    first = np.searchsorted(rows.client_of, rows.client_of)
    at = np.flatnonzero(sessions.is_forgotten)
    at = at[held[at] > held[first[at]]]
    groups: dict[int, list] = {}
    for one in at.tolist():
        groups.setdefault(int(rows.client_of[one]), []).append(one)
    for members in groups.values():
        begin, last, count = ends.begin[members[0]], ends.begin[members[-1]], len(members)
        why = "the broker says that it has no session; a limit of its own may have ended it"
        text = "a session that was to be kept"
        found.add("session_not_kept", members[0], begin, last, "likely", why, text, count)


def _disconnected(rows, found):
    # The reason that level 5 gives; one row for each client and code.
    at = np.flatnonzero((rows.kind == TYPES["DISCONNECT"]) & (rows.reason_code >= 128))
    at = at[~np.isin(rows.reason_code[at], reasons.NO_TROUBLE)]
    groups: dict[tuple, list] = {}
    for row in at.tolist():
        key = (int(rows.client[row]), int(rows.direction[row]), int(rows.reason_code[row]))
        groups.setdefault(key, []).append(row)
    for (_, side, code), members in groups.items():
        first, last = int(rows.ts[members].min()), int(rows.ts[members].max())
        finding = ("client_complains", "disconnected")[side]
        text = "reason code %s" % reasons.words(code)
        one, why = int(rows.connection[members[0]]), "DISCONNECT says so"
        found.add(finding, one, first, last, "proved", why, text, len(members))


def _refused_publishes(rows, flows, found):
    groups: dict[tuple, list] = {}
    at = np.flatnonzero(flows.is_refused)
    answer = flows.answer_row[at]
    names = rows.strings("topic", flows.publish_row[at]).to_pylist()
    for row, topic in zip(answer.tolist(), names, strict=True):
        key = (int(rows.client[row]), topic, int(rows.reason_code[row]))
        groups.setdefault(key, []).append(row)
    for (_, topic, code), members in groups.items():
        times = rows.ts[members]
        # The broker refuses what a client publishes, or a client what it was sent.
        text = "reason code %s" % reasons.words(code)
        why = "the acknowledgement says so"
        one = int(rows.connection[members[0]])
        first, last = int(times.min()), int(times.max())
        count = len(members)
        found.add("refused_publish", one, first, last, "proved", why, text, count, topic)


def _never_acknowledged(rows, flows, ends, found):
    # The client lived on for long on the connection, and a later one got its answer there.
    publish, where = flows.publish_row, rows.connection[flows.publish_row]
    mine = rows.direction[publish] == 0
    answered = np.full(len(rows.client_of), -FAR)
    known = np.flatnonzero(mine & (flows.answer_row < FAR))
    np.maximum.at(answered, where[known], rows.ts[publish[known]])
    since = rows.ts[flows.last_row]
    waits = mine & (flows.answer_row == FAR) & flows.is_known & (answered[where] > since)
    waits &= (ends.heard[where] - since >= _UNANSWERED_US) & ~flows.is_complete
    waits &= (rows.connection[flows.last_row] == where) & ~flows.is_reused
    groups: dict[tuple, list] = {}
    topics = rows.strings("topic", publish[waits]).to_pylist()
    for row, topic in zip(publish[waits].tolist(), topics, strict=True):
        groups.setdefault((int(rows.connection[row]), topic), []).append(row)
    for (one, topic), members in groups.items():
        times = rows.ts[members]
        text = "packet id %d" % rows.packet_id[members[0]]
        why = "the broker acknowledged later ones on this connection, which went on, and not this"
        first, last = int(times.min()), int(times.max())
        count = len(members)
        found.add("never_acknowledged", one, first, last, "proved", why, text, count, topic)


def _refused_subscriptions(rows, refused, found):
    for row, name, code in refused:
        ts = rows.ts[row]
        text = "filter %s, code %s" % (name, reasons.words(code))
        one = rows.connection[row]
        found.add("refused_subscription", one, ts, ts, "proved", "SUBACK says so", text)


def _capture(rows, sessions, ends, found):
    count = len(rows.client_of)
    started = np.zeros(count, bool)
    started[sessions.hello.row >= 0] = True
    # A subscriber's JSON lines are one direction by nature.
    captured = np.zeros(count, bool)
    captured[rows.connection[np.flatnonzero(rows.is_captured)]] = True
    for one in np.flatnonzero(sessions.is_one_way).tolist():
        text = ("only what the server sent", "only what the client sent")[int(ends.said[one])]
        why = "packets that must be answered are there, and not one answer"
        first, last = ends.begin[one], ends.last[one]
        found.add("one_direction", one, first, last, "proved", why, text)
    for one in np.flatnonzero(ends.has_packets & captured & ~started).tolist():
        why = "its CONNECT is not in the capture: client and session are not known"
        first, last = ends.begin[one], ends.last[one]
        text = "of what it did before nothing is judged"
        found.add("began_before", one, first, last, "proved", why, text)
    is_gap = np.flatnonzero(rows.kind == TYPES["GAP"])
    places = np.bincount(rows.connection[is_gap], minlength=count)
    missing = np.bincount(rows.connection[is_gap], rows.payload_bytes[is_gap], count)
    for one in np.flatnonzero(places).tolist():
        why = "the TCP stream goes on behind bytes that are not in the capture"
        text = "%d bytes are missing" % missing[one]
        first, last = ends.begin[one], ends.last[one]
        number = int(places[one])
        found.add("bytes_missing", one, first, last, "proved", why, text, number)


def _clock_set(rows, clock, found):
    why = "their places in the file, or TCP, tell in which order packets came; their times go back"
    for before, row in zip(clock.before_us.tolist(), clock.back.tolist(), strict=True):
        times = int(rows.ts[row]), before
        text = "set back by %.1f s" % ((times[1] - times[0]) / 1e6)
        found.add("clock_set", rows.connection[row], *times, "proved", why, text)
    why = (
        "nobody minded a silence far beyond keep alive: the clock was set forward, or the "
        "broker lets its clients be silent"
    )
    for row, silence in zip(clock.forward.tolist(), clock.forward_us.tolist(), strict=True):
        text = "%.0f s passed without a packet" % (silence / 1e6)
        times = int(rows.ts[row]) - silence, int(rows.ts[row])
        found.add("clock_set", rows.connection[row], *times, "not_knowable", why, text)
