"""Connections of clients, and the sessions that join or separate them.

A session is what makes a message sent on one connection go on with the next.  At levels
4 and 5 the server says in CONNACK whether it found one.  Where that is not known (level
3, or no CONNACK in the capture) a session ends with clean session on either of two
neighbouring connections, or when its expiry time has passed.  A refused connection
touches no session.  What came before the first known beginning is not judged.

A client may go to another server when its own does not answer.  That server knows nothing
of its session and need not; when the client is back, the session there is one that began
before.
"""

import json

import numpy as np
import pyarrow as pa

from .. import schemas
from .rows import FAR, TYPES, dictionary, servers

_NEVER_S = 0xFFFFFFFF  # the session expiry interval that does not pass
# Silence is judged with what timers and networks need: a tenth, and a second.
_TOLERANCE, _TOLERANCE_US = 1.1, 1_000_000
_MUST_BE_ANSWERED = [TYPES[name] for name in ("CONNECT", "SUBSCRIBE", "UNSUBSCRIBE", "PINGREQ")]
_ANSWERS = [
    TYPES[name] for name in ("CONNACK", "SUBACK", "UNSUBACK", "PINGRESP", "PUBACK", "PUBREC")
]


class Sessions:
    """One entry for each connection, in the order of `Rows`.

    `number` is that of its session among the client's; `is_known`: was the session's
    beginning captured; `is_forgotten`: had the server to know a session and did not;
    `is_after_goodbye`: did all earlier connections of the client end with its DISCONNECT;
    `end` when the connection was over (or last heard of), `lapse` when a session that
    nobody resumes is over; `receive_max` how many messages client and server (second
    column) take unanswered, 0 where they did not say.
    """

    def __init__(self, rows):
        self.rows = rows
        count = len(rows.client_of)
        self.hello: list[dict | None] = [None] * count
        self.hello_row = np.full(count, -1)
        self.answer: list[dict | None] = [None] * count
        self.answer_row = np.full(count, -1)
        self._read("CONNECT", self.hello, self.hello_row)
        self._read("CONNACK", self.answer, self.answer_row)
        self.clean = np.array([bool(h and h.get("clean_session")) for h in self.hello], bool)
        self.level = np.array([(h or {}).get("level", 0) for h in self.hello], np.int64)
        codes = [(a or {}).get("return_code", 0) for a in self.answer]
        self.is_refused = np.array(codes, np.int64) != 0
        self.keep_alive_s = np.array([self._keep_alive(n) for n in range(count)], np.int64)
        said = [[(one or {}).get("receive_maximum", 0) for one in self.hello]]
        said.append([(one or {}).get("receive_maximum", 0) for one in self.answer])
        self.receive_max = np.array(said, np.int64).T
        self.is_one_way = self._one_way(count)
        self.end_reason = self._end_reasons(count)
        self.end, self.lapse = self._ends(count)
        self._number(count)

    def _read(self, kind, into, first_row):
        rows = self.rows
        at = np.flatnonzero(rows.kind == TYPES[kind])
        at = at[np.diff(rows.connection[at], prepend=-1) != 0]
        first_row[rows.connection[at]] = at
        fields = parsed(rows.strings("detail", at))
        for connection, one in zip(rows.connection[at].tolist(), fields, strict=True):
            into[connection] = one

    def _keep_alive(self, number):
        answer = self.answer[number] or {}
        hello = self.hello[number] or {}
        return answer.get("keep_alive_s", hello.get("keep_alive_s", 0))

    def _one_way(self, count):
        # Packets of one side only, some of which the other side must have answered.
        rows = self.rows
        is_packet = (rows.kind < len(schemas.PACKET_TYPES)) & rows.is_captured
        sides = [
            np.bincount(rows.connection[is_packet & (rows.direction == side)], minlength=count)
            for side in (0, 1)
        ]
        needs = np.isin(rows.kind, _MUST_BE_ANSWERED) | (
            (rows.kind == TYPES["PUBLISH"]) & (rows.qos > 0)
        )
        asked = np.bincount(rows.connection[is_packet & needs], minlength=count)
        answers = np.isin(rows.kind, _ANSWERS) | needs
        answered = np.bincount(rows.connection[is_packet & answers], minlength=count)
        # A CONNECT alone may have met a server that does not talk.
        only_client = (sides[1] == 0) & (sides[0] > 1) & (asked > 0)
        return only_client | ((sides[0] == 0) & (sides[1] > 1) & (answered > 0))

    def _ends(self, count):
        rows = self.rows
        first = rows.first_of[:-1]
        end = np.maximum.reduceat(rows.ts, first) if count else np.zeros(0, np.int64)
        at = np.flatnonzero(np.isin(rows.kind, list(_GOODBYES)))
        own = at[np.diff(rows.connection[at], prepend=-1) != 0]
        end[rows.connection[own]] = rows.ts[own]
        expiry_s = np.array([self._expiry(n) for n in range(count)], np.int64)
        bye = at[rows.kind[at] == TYPES["DISCONNECT"]]
        for row, detail in zip(
            bye.tolist(), parsed(rows.strings("detail", bye)) if len(bye) else (), strict=True
        ):
            if "session_expiry_s" in detail and rows.direction[row] == 0:
                expiry_s[rows.connection[row]] = detail["session_expiry_s"]
        return end, np.where(expiry_s >= _NEVER_S, FAR, end + expiry_s * 1_000_000)

    def _expiry(self, number):
        # Seconds that the session outlives the connection.
        if self.level[number] == 5:
            answer, hello = self.answer[number] or {}, self.hello[number] or {}
            return answer.get("session_expiry_s", hello.get("session_expiry_s", 0))
        return 0 if self.clean[number] else _NEVER_S

    def _number(self, count):
        client, start = self.rows.client_of, self.rows.start_of
        self.number = np.zeros(count, np.int64)
        self.is_known = np.zeros(count, bool)
        self.is_forgotten = np.zeros(count, bool)
        server = self._servers(count)
        names = self.rows.strings("capture", self.rows.first_of[:count]).to_pylist()
        is_turned = [one > 0 and names[one] < names[one - 1] for one in range(count)]
        before = -1  # the client's last connection that was not refused
        is_apart = False  # has it been to servers that know nothing of each other?
        for one in range(count):
            is_first = one == 0 or client[one] != client[one - 1]
            before, is_apart = (-1, False) if is_first else (before, is_apart)
            if self.is_refused[one]:
                if not is_first:
                    self.number[one] = self.number[one - 1]
                    self.is_known[one] = self.is_known[one - 1]
                continue
            is_over = before >= 0 and self.lapse[before] <= start[one]
            begins = self._begins(one, is_over)
            if before < 0:
                self.is_known[one] = begins
            else:
                is_elsewhere = server[one] != server[before]
                is_back = is_elsewhere and is_apart and not begins
                self.number[one] = self.number[before] + (begins or is_back)
                self.is_known[one] = begins or (self.is_known[before] and not is_back)
                is_kept = self.hello[before] is not None and self.answer[before] is not None
                is_kept &= not is_over and not self.clean[one]
                is_kept &= begins and self.level[one] > 3
                # Files in the order of their names, against their times: the clock was set.
                self.is_forgotten[one] = is_kept and not (is_elsewhere or is_turned[one])
                is_apart |= is_kept and is_elsewhere
            before = one
        self.is_after_goodbye = self._after_goodbye(count)

    def _servers(self, count):
        # A number for each server's address, whatever its port, by connection.
        names = self.rows.strings("connection", self.rows.first_of[:count])
        return dictionary(servers(names))[0]

    def _after_goodbye(self, count):
        # At least one connection before, and none that may have taken anything with it.
        is_bye = np.array([one == "disconnect" for one in self.end_reason], bool)
        first = np.searchsorted(self.rows.client_of, self.rows.client_of)
        before = np.arange(count) - first
        byes = np.cumsum(is_bye) - is_bye
        return (before > 0) & (byes - byes[first] == before)

    def _begins(self, one, is_over):
        answer, hello = self.answer[one], self.hello[one]
        if hello is None:
            return False
        if answer is not None and "session_present" in answer and self.level[one] > 3:
            return not answer["session_present"]
        # Level 3 has no way to say that no session was found.
        return bool(self.clean[one]) or is_over

    def tables(self):
        """The `connections` table."""
        rows = self.rows
        count = len(rows.client_of)
        first = rows.first_of[:-1]
        is_packet = rows.kind < len(schemas.PACKET_TYPES)
        hello = [h or {} for h in self.hello]
        answer = [a or {} for a in self.answer]
        level = _last_level(rows, count)
        is_gap = rows.kind == TYPES["GAP"]
        columns = {
            "site": rows.strings("site", first),
            "capture": rows.strings("capture", first),
            "connection": rows.strings("connection", first),
            "client_id": rows.strings("client_id", first),
            "level": pa.array(level, pa.int8(), mask=level == 0),
            "keep_alive_s": pa.array(
                self.keep_alive_s, pa.int32(), mask=np.array([not h for h in hello], bool)
            ),
            "clean_session": [h.get("clean_session") for h in hello],
            "has_will": ["will_topic" in h if h else None for h in hello],
            "will_topic": [h.get("will_topic") for h in hello],
            "will_qos": [h.get("will_qos") for h in hello],
            "has_user": [h.get("has_user") for h in hello],
            "session_present": [a.get("session_present") for a in answer],
            "return_code": [a.get("return_code") for a in answer],
            "client_receive_max": _known(self.receive_max[:, 0]),
            "server_receive_max": _known(self.receive_max[:, 1]),
            "session": self.number,
            "start": rows.start_of,
            "end": np.maximum.reduceat(rows.ts, first) if count else [],
            "end_reason": self.end_reason,
            "is_start_seen": [bool(h) for h in hello],
            "gaps": _sums(rows, is_gap),
            "missing_bytes": _sums(rows, is_gap * rows.payload_bytes),
        }
        for code, name in enumerate(schemas.DIRECTIONS):
            mine = is_packet & (rows.direction == code)
            columns["packets_" + name] = _sums(rows, mine)
            columns["bytes_" + name] = _sums(rows, mine * rows.packet_bytes)
        return table(columns, schemas.CONNECTIONS)

    def _end_reasons(self, count):
        # The first goodbye of each connection, whoever says it.
        rows = self.rows
        at = np.flatnonzero(np.isin(rows.kind, list(_GOODBYES)))
        at = at[np.diff(rows.connection[at], prepend=-1) != 0]
        reasons = ["open"] * count
        ends = (rows.connection[at], rows.kind[at], rows.direction[at])
        for connection, kind, side in zip(*(end.tolist() for end in ends), strict=True):
            reasons[connection] = _GOODBYES[kind][side]
        return reasons


def allowed_silence_us(keep_alive_s):
    """How long a client with this keep alive time may be silent, tolerance included."""
    return keep_alive_s * 1_000_000 * _TOLERANCE + _TOLERANCE_US


_GOODBYES = {
    TYPES["DISCONNECT"]: ("disconnect", "closed_by_server"),
    TYPES["TCP_RESET"]: ("reset", "reset"),
    TYPES["TCP_FIN"]: ("closed_by_client", "closed_by_server"),
}


def parsed(details):
    """The dicts of a `detail` column."""
    # One call for all: most of the time would go into calling.  Answers are mostly the same.
    codes, texts = dictionary(details)
    found = json.loads("[%s]" % ",".join([text or "{}" for text in [*texts.to_pylist(), None]]))
    return [found[code] for code in codes.tolist()]


def _known(numbers):
    return pa.array(numbers, pa.int32(), mask=numbers == 0)


def _last_level(rows, count):
    level = np.zeros(count, np.int64)
    seen = rows.level > 0
    level[rows.connection[seen]] = rows.level[seen]
    return level


def _sums(rows, values):
    # Over the rows of each connection.
    first = rows.first_of[:-1]
    return np.add.reduceat(values, first, dtype=np.int64) if len(first) else first


def table(columns, schema):
    """An Arrow table of `schema` from numpy arrays, lists and Arrow arrays.

    Strings may stay dictionaries; `plain` of the module `pack` makes them strings.
    """
    arrays = {}
    for field in schema:
        values = columns[field.name]
        if isinstance(values, np.ndarray) and pa.types.is_timestamp(field.type):
            values = pa.array(values, pa.int64())
        elif not isinstance(values, pa.Array | pa.ChunkedArray):
            values = pa.array(values, field.type)
        kind = values.type
        is_coded = pa.types.is_dictionary(kind) and kind.value_type == field.type
        arrays[field.name] = values if is_coded or kind == field.type else values.cast(field.type)
    return pa.table(arrays)
