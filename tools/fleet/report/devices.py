"""The table `devices`: one row for each client, with what is wrong with it in words.

The tasks that judge give partial rows, by client, topic or device; rows of one client are
then merged.  A client is `losing` when messages of it or for it were lost, `faulty` when
it broke a statement or is in trouble, `unsteady` when its connections or messages end as
they should not, and otherwise `well`.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import outcome, schemas
from ..columns import runs, table

_KEYS = ["site", "client_id"]
_ENDS = ("disconnect", "closed_by_client", "closed_by_server", "reset", "open")
# How to combine the columns of partial rows.
_OPERATIONS = {
    field.name: "sum" if field.type == pa.int64() else "max"
    for field in schemas.DEVICES
    if field.name not in (*_KEYS, "state", "why")
} | {"keep_alive_s": "max", "first_seen": "min"}
# What decides the state of a client, the most important first, and its words.
_REASONS = (
    ("losing", "lost", "messages of it lost: {}"),
    ("losing", "missed", "messages for it that did not arrive: {}"),
    ("faulty", "violations", "statements broken: {}"),
    ("faulty", "troubles", "in trouble: {}"),
    ("unsteady", "refused", "connects refused: {}"),
    ("unsteady", "incomplete", "messages given up: {}"),
    ("unsteady", "late", "silent beyond its keep alive: {}"),
    ("unsteady", "ended_reset", "connections reset: {}"),
    ("unsteady", "ended_closed_by_server", "connections closed by the server: {}"),
)
STATES = ("losing", "faulty", "unsteady", "well")


def partial(tables):
    """Partial rows of what some tables of one task tell of clients."""
    found = [read(tables[one]) for one, read in _READERS if one in tables and tables[one].num_rows]
    return pa.concat_tables(found, promote_options="default") if found else None


def merge(partials):
    """Partial rows of some clients -> the table of `schemas.DEVICES`."""
    partials = [schemas.DEVICES.empty_table(), *partials]
    rows = pa.concat_tables(partials, promote_options="permissive")
    rows = rows.group_by(_KEYS).aggregate(list(_OPERATIONS.items()))
    rows = rows.rename_columns({"%s_%s" % item: item[0] for item in _OPERATIONS.items()})
    columns = {name: rows[name] for name in [*_KEYS, *_OPERATIONS]}
    sums = (name for name, operation in _OPERATIONS.items() if operation == "sum")
    columns |= {name: pc.fill_null(columns[name], 0) for name in sums}
    columns["state"], columns["why"] = _states(columns, len(rows))
    return table(columns, schemas.DEVICES)


def _states(columns, count):
    state = np.full(count, len(STATES) - 1)
    texts = [[] for _ in range(count)]
    for name, column, text in _REASONS:
        numbers = columns[column].to_numpy()
        at = np.flatnonzero(numbers > 0)
        state[at] = np.minimum(state[at], STATES.index(name))
        for one, number in zip(at.tolist(), numbers[at].tolist(), strict=True):
            texts[one].append(text.format(number))
    why = ["; ".join(parts) or None for parts in texts]
    return pa.array(STATES).take(pa.array(state)), pa.array(why, pa.string())


def _plain(values):
    if pa.types.is_boolean(values.type):
        return values.cast(pa.int64())
    is_coded = pa.types.is_dictionary(values.type)
    return values.cast(values.type.value_type) if is_coded else values


def _by(key, columns, is_such=None):
    # -> function(table): rows by site and client (in the column `key`) of what `columns` are made
    # of: the name of one of the table's, or a function of the table.
    def read(table):
        table = table.filter(is_such(table)) if is_such else table
        found = {"site": table["site"], "client_id": table[key]}
        for name, one in columns.items():
            found[name] = table[one] if isinstance(one, str) else one(table)
        found = pa.table({name: _plain(values) for name, values in found.items()})
        wanted = [(name, _PARTIAL.get(name, _OPERATIONS[name])) for name in columns]
        found = found.group_by(_KEYS).aggregate(wanted)
        return found.rename_columns({"%s_%s" % one: one[0] for one in wanted})

    return read


def _ones(table):
    return pa.array(np.ones(len(table), np.int64))


def _where(key, value, column):
    return lambda table: pc.if_else(pc.equal(table[key], value), table[column], 0)


def _is_trouble(table):
    return pc.and_(pc.equal(table["about"], "client"), outcome.is_known(table))


def _is_counted(who):
    return lambda table: pc.and_(outcome.is_counted(table), pc.is_valid(table[who]))


def _latency(table):
    # Of each topic, all of which one task has; the slowest counts, wherever others are judged.
    some = table.filter(pc.and_(pc.is_valid(table["latency_ms"]), pc.is_valid(table["device"])))
    keys = [_plain(some[name]).combine_chunks() for name in ("site", "device", "topic")]
    who = pc.binary_join_element_wise(*keys, "\0").dictionary_encode()
    codes, values = who.indices.to_numpy(), some["latency_ms"].to_numpy()
    order = np.lexsort((values, codes))
    first, last = runs(codes[order])
    columns = {name: keys[at].take(pa.array(order[first])) for at, name in enumerate(_KEYS)}
    for name, percent in (("latency_p50_ms", 50), ("latency_p95_ms", 95)):
        columns[name] = values[order[first + (last - first) * percent // 100]]
    return pa.table(columns)


_CONNECTIONS = {
    "connects": _ones,
    "refused": lambda t: pc.not_equal(pc.fill_null(t["return_code"], 0), 0),
    **{"first_seen": "start", "last_seen": "end", "keep_alive_s": "keep_alive_s"},
    **{"ended_" + end: lambda t, end=end: pc.equal(t["end_reason"], end) for end in _ENDS},
}
_SEQUENCES = {
    "sent": _where("direction", "c2s", "messages"),
    "received": _where("direction", "s2c", "messages"),
    **{name: name for name in ("redelivered", "duplicates", "overtaking")},
    # A message that was given up counts for the side that gave it up.
    "incomplete": _where("direction", "c2s", "incomplete"),
}
# What the broker did not pass on is no fault of the publisher.
_LOSSES = {
    "lost": _where("kind", "never_seen", "messages"),
    "undelivered": _where("kind", "not_delivered", "messages"),
}
_PARTIAL = {"boots": "count_distinct"}  # of one device in one task only
_READERS = (
    ("connections", _by("client_id", _CONNECTIONS)),
    ("keepalive", _by("client_id", {n: n for n in ("late", "longest_silence_s", "ping_ms")})),
    # What the broker did wrong is no fault of the client on that connection.
    ("violations", _by("client_id", {"violations": _ones}, lambda t: pc.equal(t["by"], "client"))),
    ("findings", _by("client_id", {"troubles": "count"}, _is_trouble)),
    ("sequences", _by("client_id", _SEQUENCES)),
    ("losses", _by("published_by", _LOSSES, _is_counted("published_by"))),
    ("losses", _by("client_id", {"missed": "messages"}, _is_counted("client_id"))),
    ("readings", _by("device", {"readings": _ones, "firmware": "firmware", "boots": "boot"})),
    ("readings", _latency),
    ("latency", _latency),
)
