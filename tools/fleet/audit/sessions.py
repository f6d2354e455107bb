"""Connections of clients, and the sessions that join or separate them.

A session is what makes a message sent on one connection go on with the next.  It
ends with clean session (on either of two neighbouring connections), or when the
server says that it kept none (level 4 and 5).  What came before the first known
beginning is not judged.
"""

import json

import numpy as np
import pyarrow as pa

from .. import schemas
from .rows import TYPES


class Sessions:
    """One entry for each connection, in the order of `Rows`."""

    def __init__(self, rows):
        self.rows = rows
        count = len(rows.client_of)
        self.hello = [None] * count
        self.hello_row = np.full(count, -1)
        self.answer = [None] * count
        self._read("CONNECT", self.hello, self.hello_row)
        self._read("CONNACK", self.answer, np.full(count, -1))
        self.clean = np.array([bool(h and h.get("clean_session")) for h in self.hello])
        self.keep_alive_s = np.array([self._keep_alive(n) for n in range(count)])
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

    def _number(self, count):
        # `number`: of the session; `is_known`: was its beginning captured?
        client = self.rows.client_of
        self.number = np.zeros(count, np.int64)
        self.is_known = np.zeros(count, bool)
        for one in range(count):
            answer, hello = self.answer[one] or {}, self.hello[one] or {}
            is_first = one == 0 or client[one] != client[one - 1]
            refused = answer.get("return_code", 0) != 0
            # Level 3 has no way to say that no session was found.
            none_found = (
                "session_present" in answer
                and not answer["session_present"]
                and hello.get("level", 3) > 3
            )
            begins = (self.clean[one] or none_found) and not refused
            if is_first:
                self.is_known[one] = begins
                continue
            begins |= bool(self.clean[one - 1])
            self.number[one] = self.number[one - 1] + begins
            self.is_known[one] = begins or self.is_known[one - 1]

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
            "session": self.number,
            "start": rows.start_of,
            "end": np.maximum.reduceat(rows.ts, first) if count else [],
            "end_reason": self._end_reasons(count),
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


_GOODBYES = {
    TYPES["DISCONNECT"]: ("disconnect", "disconnect"),
    TYPES["TCP_RESET"]: ("reset", "reset"),
    TYPES["TCP_FIN"]: ("closed_by_client", "closed_by_server"),
}


def parsed(details):
    """The dicts of a `detail` column."""
    # One call for all: most of the time would go into calling.
    texts = details.to_pylist()
    return json.loads("[%s]" % ",".join([text or "{}" for text in texts]))


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
