"""How each client kept its connection alive."""

import numpy as np
import pyarrow as pa

from .. import schemas
from ..columns import runs, table
from .rows import TYPES


def keepalive(rows, sessions, silent):
    """The `keepalive` table: one row for each connection, of which `silences` found `silent`."""
    count = len(rows.client_of)
    longest, late = silent
    ask, answer = TYPES["PINGREQ"], TYPES["PINGRESP"]
    at = np.flatnonzero((rows.kind == ask) | (rows.kind == answer))
    connection, kind = rows.connection[at], rows.kind[at]
    is_pair = (kind[:-1] == ask) & (kind[1:] == answer) & (connection[:-1] == connection[1:])
    pair = np.flatnonzero(is_pair)
    pings = np.bincount(connection[kind == ask], minlength=count)
    unanswered = pings - np.bincount(connection[pair], minlength=count)
    wait = np.maximum(rows.ts[at[pair + 1]] - rows.ts[at[pair]], 0) / 1000
    who = connection[pair]
    order = np.lexsort((wait, who))
    wait, who = wait[order], who[order]
    first, last = runs(who)
    median = np.full(count, np.nan)
    median[who[first]] = (wait[(first + last) // 2] + wait[(first + last + 1) // 2]) / 2
    columns = {
        **rows.columns(("site", "client_id", "connection"), rows.first_of[:-1]),
        **{"late": late, "pings": pings},
        "start": rows.start_of,
        "keep_alive_s": pa.array(sessions.keep_alive_s, pa.int64(), mask=sessions.hello.row < 0),
        "longest_silence_s": longest / 1e6,
        "unanswered_pings": np.where(sessions.is_one_way, 0, unanswered),
        "ping_ms": pa.array(median, mask=np.isnan(median)),
    }
    return table(columns, schemas.KEEPALIVE)
