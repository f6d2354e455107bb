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

import numpy as np
import pyarrow as pa

from .. import schemas
from ..columns import begins, over, table
from .rows import FAR, TYPES, dictionary, ranks, servers
from .told import Told, parsed

_NEVER_S = 0xFFFFFFFF  # the session expiry interval that never ends
# Timers and networks may add a tenth and a second to the allowed silence.
_TOLERANCE, _TOLERANCE_US = 1.1, 1_000_000
_MUST_BE_ANSWERED = [TYPES[name] for name in "CONNECT SUBSCRIBE UNSUBSCRIBE PINGREQ".split()]
_ANSWERS = [TYPES[one] for one in "CONNACK SUBACK UNSUBACK PINGRESP PUBACK PUBREC".split()]


class Sessions:
    """One entry for each connection, in the order of `Rows`.

    `hello` and `answer` are what CONNECT and CONNACK say (`Told`).
    `number` is that of its session among the client's; `is_known`: was the session's
    beginning captured; `is_forgotten`: had the server to know a session and did not;
    `is_after_goodbye[side]`: did all earlier connections of the client end so that nothing that
    client (server: 1) had sent is missing, with its DISCONNECT and the server's FIN;
    `goodbye_row` is the first goodbye, whoever says it, -1 without one;
    `end` when the connection was over (or last heard of), `lapse` when a session that
    nobody resumes is over; `receive_max` how many messages client and server (second
    column) take unanswered, 0 where they did not say.
    """

    def __init__(self, rows):
        self.rows = rows
        count = len(rows.client_of)
        self.hello, self.answer = hello, answer = Told(rows, "CONNECT"), Told(rows, "CONNACK")
        self.clean = hello.flags("clean_session")
        self.level = hello.numbers("level")
        self.is_refused = answer.flags("return_code")
        # At level 5 the server may set another keep alive time.
        own = answer.numbers("keep_alive_s", -1)
        self.keep_alive_s = np.where(own < 0, hello.numbers("keep_alive_s"), own)
        limits = [one.numbers("receive_maximum") for one in (hello, answer)]
        self.receive_max = np.array(limits, np.int64).T
        self.is_one_way = self._one_way(count)
        byes = rows.firsts(np.flatnonzero(np.isin(rows.kind, list(_GOODBYES))))
        self.goodbye_row = over(np.maximum, count, rows.connection[byes], byes, -1)
        kinds = np.zeros((len(TYPES), 2), np.int64)  # places in `_ENDINGS`
        for kind, reasons in _GOODBYES.items():
            kinds[kind] = [_ENDINGS.index(reason) for reason in reasons]
        self._ending = self.at_goodbye(kinds[rows.kind, rows.direction], 0)
        self.end = self.at_goodbye(rows.ts, rows.end_of)
        # How many seconds each session lives on after its connection.
        own = answer.numbers("session_expiry_s", -1)
        at_5 = np.where(own < 0, hello.numbers("session_expiry_s"), own)
        expiry_s = np.where(self.level == 5, at_5, np.where(self.clean, 0, _NEVER_S))
        bye = np.flatnonzero((rows.kind == TYPES["DISCONNECT"]) & (rows.direction == 0))
        said = parsed(rows.strings("detail", bye))
        for connection, detail in zip(rows.connection[bye].tolist(), said, strict=True):
            expiry_s[connection] = detail.get("session_expiry_s", expiry_s[connection])
        self.lapse = np.where(expiry_s >= _NEVER_S, FAR, self.end + expiry_s * 1_000_000)
        self._number(count)

    def _one_way(self, count):
        # Packets of one side only, although the other side must have answered some.
        rows = self.rows
        is_packet = rows.is_packet & rows.is_captured

        def counted(mask):
            return np.bincount(rows.connection[np.flatnonzero(is_packet & mask)], minlength=count)

        sides = [counted(rows.direction == side) for side in (0, 1)]
        needs = (rows.kind == TYPES["PUBLISH"]) & (rows.qos > 0) & (rows.qos < 3)
        needs |= np.isin(rows.kind, _MUST_BE_ANSWERED)
        asked = counted(needs)
        answered = counted(np.isin(rows.kind, _ANSWERS) | needs)
        # If there is only CONNECT, the server may not have answered.
        only_client = (sides[1] == 0) & (sides[0] > 1) & (asked > 0)
        return only_client | ((sides[0] == 0) & (sides[1] > 1) & (answered > 0))

    def _number(self, count):
        # Only connections that were not refused; `before` is the client's last one before.
        rows = self.rows
        self.is_known = np.zeros(count, bool)
        self.is_forgotten = np.zeros(count, bool)
        number = np.zeros(count, np.int64)
        one = np.flatnonzero(~self.is_refused)
        client = rows.client_of[one]
        is_first = np.diff(client, prepend=-1) != 0
        before = one[np.maximum(np.arange(len(one)) - 1, 0)]
        first = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]

        is_over = ~is_first & (self.lapse[before] <= rows.start_of[one])
        # Does a session begin here, as far as the capture shows?  A broker of level 3 cannot say
        # that it found none.
        present = self.answer.numbers("session_present", -1)[one]
        is_told = (self.level[one] > 3) & (present >= 0)
        begins = np.where(is_told, present == 0, self.clean[one] | is_over)
        begins &= self.hello.row[one] >= 0
        self._server, self._servers = servers(rows.strings("connection", rows.first_of[:count]))
        server = self._server
        is_elsewhere = ~is_first & (server[one] != server[before])
        # Did both sides say that the server has to know the session?
        has_both = (self.hello.row >= 0) & (self.answer.row >= 0)
        is_kept = ~is_first & has_both[before] & ~is_over & ~self.clean[one]
        is_kept &= begins & (self.level[one] > 3)
        # Was the client connected to servers that do not know each other?
        moves = np.cumsum(is_kept & is_elsewhere) - (is_kept & is_elsewhere)
        is_apart = moves > moves[first]
        is_back = is_elsewhere & is_apart & ~begins
        follows = (begins & ~is_first) | is_back
        number[one] = np.cumsum(follows) - np.cumsum(follows)[first]
        # Known from a beginning on, until it comes to a server where nothing is known.
        last = np.where(begins | is_back, np.arange(len(one)), -1)
        last = np.maximum.accumulate(last)
        self.is_known[one] = (last >= first) & begins[last]
        # Files whose names and times are in different orders: the clock was set.
        codes, names = dictionary(rows.strings("capture", rows.first_of[:count]))
        is_turned = np.diff(ranks(names)[codes], prepend=0) < 0
        self.is_forgotten[one] = is_kept & ~is_elsewhere & ~is_turned[one]
        # A refused connection belongs to the session of the one before it.
        last = np.maximum.accumulate(np.where(self.is_refused, -1, np.arange(count)))
        is_mine = (last >= 0) & (rows.client_of[last] == rows.client_of)
        self.number = np.where(is_mine, number[last], 0)
        self.is_known = is_mine & self.is_known[last]
        is_bye = self.ended("disconnect")
        fins = (rows.kind == TYPES["TCP_FIN"]) & (rows.direction == 1)
        ends = is_bye, is_bye & rows.connections_with(fins)
        # There was a connection before, and each ended so that nothing of it can be missing.
        first = np.searchsorted(rows.client_of, rows.client_of)
        before = np.arange(count) - first
        byes = np.cumsum(ends, axis=1) - ends
        self.is_after_goodbye = (before > 0) & (byes - byes[:, first] == before)

    def servers_at(self, at):
        """The address of the server to which the connections of these rows lead, as Arrow."""
        codes = self._server[self.rows.connection[at]]
        return pa.DictionaryArray.from_arrays(pa.array(codes), self._servers)

    def first_rows(self):
        """The first row of each connection's session."""
        is_first = begins(self.rows.client_of, self.number)
        return self.rows.first_of[:-1][is_first][np.cumsum(is_first) - 1]

    def tables(self):
        """The `connections` table."""
        rows = self.rows
        count = len(rows.client_of)
        hello, answer = self.hello, self.answer
        level, seen = np.zeros(count, np.int64), np.flatnonzero(rows.level > 0)
        level[rows.connection[seen]] = rows.level[seen]
        gap = np.flatnonzero(rows.kind == TYPES["GAP"])
        missing = np.bincount(rows.connection[gap], rows.payload_bytes[gap], count)
        columns = {
            **rows.columns(("site", "capture", "connection", "client_id"), rows.first_of[:-1]),
            "level": pa.array(level, pa.int8(), mask=level == 0),
            "keep_alive_s": pa.array(self.keep_alive_s, pa.int32(), mask=~hello.has_some),
            "has_will": hello.mapped(lambda one: "will_topic" in one if one else None, pa.bool_()),
            "client_receive_max": _known(self.receive_max[:, 0]),
            "server_receive_max": _known(self.receive_max[:, 1]),
            **{"session": self.number, "start": rows.start_of, "end": rows.end_of},
            "end_reason": pa.array(_ENDINGS).take(pa.array(self._ending)),
            "is_start_seen": hello.has_some,
            "gaps": np.bincount(rows.connection[gap], minlength=count),
            "missing_bytes": missing.astype(np.int64),
        }
        said = {"session_present": answer, "return_code": answer}
        said |= dict.fromkeys(("clean_session", "will_topic", "will_qos", "has_user"), hello)
        for name, packet in said.items():
            columns[name] = packet.column(name, schemas.CONNECTIONS.field(name).type)
        for code, name in enumerate(schemas.DIRECTIONS):
            mine = rows.is_packet & (rows.direction == code)
            columns["packets_" + name] = _sums(rows, mine)
            columns["bytes_" + name] = _sums(rows, mine * rows.packet_bytes)
        return table(columns, schemas.CONNECTIONS)

    def ended(self, reason):
        """Which connections ended in this way, one of the column `end_reason`?"""
        return self._ending == _ENDINGS.index(reason)

    def at_goodbye(self, values, none):
        """Of each connection the value of its `goodbye_row`, `none` where there is none."""
        return np.where(self.goodbye_row < 0, none, np.append(values, 0)[self.goodbye_row])


def allowed_silence_us(keep_alive_s):
    """How long a client with this keep alive time may be silent, tolerance included."""
    return keep_alive_s * 1_000_000 * _TOLERANCE + _TOLERANCE_US


_ENDINGS = ("open", "disconnect", "closed_by_client", "closed_by_server", "reset")
_GOODBYES = {
    TYPES["DISCONNECT"]: ("disconnect", "closed_by_server"),
    TYPES["TCP_RESET"]: ("reset", "reset"),
    TYPES["TCP_FIN"]: ("closed_by_client", "closed_by_server"),
}


def _known(numbers):
    return pa.array(numbers, pa.int32(), mask=numbers == 0)


def _sums(rows, values):
    # -> `function` over the rows of each connection.
    total = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
    return np.diff(total[rows.first_of])
