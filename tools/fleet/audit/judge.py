"""One pass over the packets of some clients: all tables that need only these."""

from . import levels
from .brokers import told_apart
from .clock import Clock
from .copies import Copies
from .findings import findings
from .keepalive import keepalive
from .messages import Flows, Gaps, messages
from .rows import Rows
from .sequences import sequences
from .sessions import Sessions
from .subscriptions import subscriptions
from .violations import silences, violations
from .wills import wills


def judge(table):
    """`schemas.EVENTS` of whole clients -> {name: Arrow table}."""
    rows, told = Rows(table), []
    copies = Copies(rows)
    if copies.of:
        table, told = copies.without(table)
        rows = Rows(table)
    apart = told_apart(rows, table)
    rows = rows if apart is table else Rows(apart)
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
        "keepalive": keepalive(rows, sessions, silent),
        "subscriptions": subscribed,
        "wills": wills(rows, sessions),
    }
