"""What each client had subscribed to, from when to when.

A subscription begins with its SUBACK and ends with UNSUBSCRIBE or with the session.
"""

import numpy as np

from .. import schemas
from .rows import TYPES
from .sessions import parsed, table


def subscriptions(rows, sessions, gaps):
    """The `schemas.SUBSCRIPTIONS` table."""
    kinds = [TYPES[name] for name in ("SUBSCRIBE", "SUBACK", "UNSUBSCRIBE")]
    # The fields cannot be told apart where the protocol's level was not captured.
    at = np.flatnonzero(np.isin(rows.kind, kinds) & (rows.level > 0))
    details = parsed(rows.strings("detail", at))
    asked, active = {}, {}
    done: list[tuple] = []
    for row, detail in zip(at.tolist(), details, strict=True):
        connection = int(rows.connection[row])
        client = int(rows.client[row])
        session = (client, int(sessions.number[connection]))
        key = (connection, int(rows.packet_id[row]))
        if rows.kind[row] == kinds[0]:
            asked[key] = detail.get("filters", [])
        elif rows.kind[row] == kinds[1]:
            granted = zip(asked.pop(key, ()), detail.get("codes", ()))
            for (name, _), code in granted:
                if code < 3 and (session, name) not in active:
                    active[session, name] = (row, code)
        else:
            for (name,) in detail.get("filters", []):
                if (session, name) in active:
                    begin, qos = active.pop((session, name))
                    done.append((session, name, begin, qos, int(rows.ts[row])))
    done += [(*key, begin, qos, None) for key, (begin, qos) in active.items()]
    return _table(rows, sessions, gaps, done)


def _table(rows, sessions, gaps, done):
    ends = _session_ends(rows, sessions)
    last = _client_ends(rows)
    begins = np.array([entry[2] for entry in done], np.int64)
    missing = gaps.times(rows)
    columns = {
        "site": rows.strings("site", begins),
        "client_id": rows.strings("client_id", begins),
        "filter": [entry[1] for entry in done],
        "qos": [entry[3] for entry in done],
        "session": [entry[0][1] for entry in done],
        "begin": rows.ts[begins],
        "end": np.array([e[4] or ends[e[0]] for e in done], np.int64),
        "last_seen": np.array([last[e[0][0]] for e in done], np.int64),
        "gap_begins": [missing.get(e[0][0], ([], []))[0] for e in done],
        "gap_ends": [missing.get(e[0][0], ([], []))[1] for e in done],
    }
    return table(columns, schemas.SUBSCRIPTIONS)


def _session_ends(rows, sessions):
    # The start of the client's next session, or its last packet.
    ends = {}
    last = _client_ends(rows)
    for connection in range(len(rows.client_of) - 1, -1, -1):
        client = int(rows.client_of[connection])
        number = int(sessions.number[connection])
        follows = connection + 1 < len(rows.client_of)
        if (client, number) not in ends:
            same = follows and rows.client_of[connection + 1] == client
            end = rows.start_of[connection + 1] if same else last[client]
            ends[client, number] = int(end)
    return ends


def _client_ends(rows):
    last = np.zeros(int(rows.client.max(initial=-1)) + 1, np.int64)
    np.maximum.at(last, rows.client, rows.ts)
    return last.tolist()
