"""One pass over the packets of some clients: all tables that need only these."""

import numpy as np
import pyarrow as pa

from .. import schemas
from ..columns import runs, table
from . import levels
from .brokers import told_apart
from .clock import Clock
from .copies import Copies
from .findings import findings
from .messages import Flows, Gaps, messages
from .rows import TYPES, Rows
from .sequences import sequences
from .sessions import Sessions
from .subscriptions import subscriptions
from .violations import silences, violations
from .wills import wills


def judge(events):
    """`schemas.EVENTS` of whole clients -> {name: Arrow table}."""
    rows, told = Rows(events), []
    copies = Copies(rows)
    if copies.of:
        events, told = copies.without(events)
        rows = Rows(events)
    apart = told_apart(rows, events)
    rows = rows if apart is events else Rows(apart)
    levels.infer(rows)
    sessions = Sessions(rows)
    gaps = Gaps(rows)
    clock = Clock(rows, sessions, gaps)
    flows = Flows(rows, sessions, gaps)
    silent, late = silences(rows, sessions, gaps, clock)
    subscribed, refused = subscriptions(rows, sessions, gaps, flows, clock)
    return {
        "connections": sessions.tables(),
        "messages": messages(rows, sessions, gaps, flows, clock),
        "sequences": sequences(rows, sessions, flows),
        "violations": violations(rows, sessions, gaps, flows, clock, late),
        "findings": findings(rows, sessions, flows, clock, refused, told),
        "keepalive": _keepalive(rows, sessions, silent),
        "subscriptions": subscribed,
        "wills": wills(rows, sessions),
    }


def _keepalive(rows, sessions, silent):
    # One row for each connection, of which `silences` found `silent`.
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
