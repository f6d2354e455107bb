"""The table `devices`: one row for each client, with what is wrong with it in words.

The tasks that judge give partial rows, by client, topic or device; rows of one client are
then merged.  A client is `losing` when messages of it or for it were lost, `faulty` when
it broke a statement or is in trouble, `unsteady` when its connections or messages end as
they should not, and otherwise `well`.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas

_KEYS = ["site", "client_id"]
_ENDS = ("disconnect", "closed_by_client", "closed_by_server", "reset", "open")
# How the columns of partial rows are put together.
_OPERATIONS = {
    **dict.fromkeys(
        ("lost", "undelivered", "missed", "duplicates", "overtaking", "incomplete"), "sum"
    ),
    **dict.fromkeys(("violations", "troubles", "late", "connects", "refused"), "sum"),
    **dict.fromkeys(("ended_" + name for name in _ENDS), "sum"),
    **dict.fromkeys(("sent", "received", "redelivered", "readings", "boots"), "sum"),
    **dict.fromkeys(("firmware", "keep_alive_s", "longest_silence_s", "ping_ms"), "max"),
    **dict.fromkeys(("latency_p50_ms", "latency_p95_ms", "last_seen"), "max"),
    "first_seen": "min",
}
# What makes a client what it is, in the order of importance, and in words.
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
    found = [
        reader(tables[name])
        for name, readers in _READERS.items()
        for reader in readers
        if name in tables and tables[name].num_rows
    ]
    return pa.concat_tables(found, promote_options="default") if found else None


def merge(partials):
    """Partial rows of some clients -> the table of `schemas.DEVICES`."""
    rows = pa.concat_tables(partials, promote_options="permissive")
    for name in _OPERATIONS:
        if name not in rows.column_names:
            rows = rows.append_column(name, pa.nulls(len(rows), schemas.DEVICES.field(name).type))
    rows = rows.group_by(_KEYS).aggregate(list(_OPERATIONS.items()))
    rows = rows.rename_columns({"%s_%s" % item: item[0] for item in _OPERATIONS.items()})
    columns = {name: rows[name] for name in [*_KEYS, *_OPERATIONS]}
    for name, operation in _OPERATIONS.items():
        if operation == "sum":
            columns[name] = pc.fill_null(columns[name], 0)
    columns["state"], columns["why"] = _states(columns, len(rows))
    arrays = [columns[field.name].cast(field.type) for field in schemas.DEVICES]
    return pa.table(arrays, schema=schemas.DEVICES)


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


def _grouped(table, key, columns):
    """Rows by site and client of {column of the result: (column, operation)}."""
    named = {"site": table["site"], "client_id": table[key]}
    named |= {name: values for name, (values, _) in columns.items()}
    plain = pa.table({name: _plain(values) for name, values in named.items()})
    wanted = [(name, operation) for name, (_, operation) in columns.items()]
    found = plain.group_by(_KEYS).aggregate(wanted)
    return found.rename_columns({"%s_%s" % one: one[0] for one in wanted})


def _plain(values):
    is_coded = pa.types.is_dictionary(values.type)
    return values.cast(values.type.value_type) if is_coded else values


def _ones(table):
    return pa.array(np.ones(len(table), np.int64))


def _connections(table):
    code = pc.fill_null(table["return_code"], 0)
    columns = {
        "connects": (_ones(table), "sum"),
        "refused": (pc.not_equal(code, 0).cast(pa.int64()), "sum"),
        "first_seen": (table["start"], "min"),
        "last_seen": (table["end"], "max"),
        "keep_alive_s": (table["keep_alive_s"], "max"),
    }
    reason = _plain(table["end_reason"])
    for name in _ENDS:
        columns["ended_" + name] = (pc.equal(reason, name).cast(pa.int64()), "sum")
    return _grouped(table, "client_id", columns)


def _keepalive(table):
    columns = {
        "late": (table["late"].cast(pa.int64()), "sum"),
        "longest_silence_s": (table["longest_silence_s"], "max"),
        "ping_ms": (table["ping_ms"], "max"),
    }
    return _grouped(table, "client_id", columns)


def _violations(table):
    # What the broker did wrong is no fault of the client it was seen with.
    own = table.filter(pc.equal(_plain(table["by"]), "client"))
    return _grouped(own, "client_id", {"violations": (_ones(own), "sum")})


def _findings(table):
    is_own = pc.and_(pc.equal(table["about"], "client"), _is_known(table))
    own = table.filter(is_own)
    return _grouped(own, "client_id", {"troubles": (own["count"], "sum")})


def _is_known(table):
    return pc.not_equal(_plain(table["sure"]), "not_knowable")


def _sequences(table):
    is_sent = pc.equal(_plain(table["direction"]), "c2s")
    messages = table["messages"]
    columns = {
        "sent": (pc.if_else(is_sent, messages, 0), "sum"),
        "received": (pc.if_else(is_sent, 0, messages), "sum"),
    }
    for name in ("redelivered", "duplicates", "overtaking"):
        columns[name] = (pc.fill_null(table[name], 0), "sum")
    # A message given up is told of the side that gave it up.
    columns["incomplete"] = (pc.if_else(is_sent, table["incomplete"], 0), "sum")
    return _grouped(table, "client_id", columns)


def _lost(table):
    # What the broker did not pass on is no fault of who published it.
    some = _counted(table, "published_by")
    own = pc.equal(_plain(some["kind"]), "never_seen")
    columns = {"lost": own, "undelivered": pc.invert(own)}
    columns = {
        name: (pc.if_else(is_such, some["messages"], 0), "sum")
        for name, is_such in columns.items()
    }
    return _grouped(some, "published_by", columns)


def _missed(table):
    some = _counted(table, "client_id")
    return _grouped(some, "client_id", {"missed": (some["messages"], "sum")})


def _counted(table, who):
    is_such = pc.and_(_is_known(table), pc.greater(table["qos"], 0))
    return table.filter(pc.and_(is_such, pc.is_valid(table[who])))


def _readings(table):
    columns = {"readings": (_ones(table), "sum"), "firmware": (table["firmware"], "max")}
    found = _grouped(table, "device", columns)
    boots = {"site": table["site"], "client_id": table["device"], "boot": table["boot"]}
    boots = pa.table({name: _plain(values) for name, values in boots.items()})
    boots = boots.group_by(_KEYS).aggregate([("boot", "count_distinct")])
    boots = boots.rename_columns({"boot_count_distinct": "boots"})
    return pa.concat_tables([found, boots, _latency(table)], promote_options="default")


def _latency(table):
    # Exact, as all readings of a device are here.
    some = table.filter(pc.and_(pc.is_valid(table["latency_ms"]), pc.is_valid(table["device"])))
    keys = [_plain(some[name]).combine_chunks() for name in ("site", "device")]
    who = pc.binary_join_element_wise(*keys, "\0").dictionary_encode()
    codes, values = who.indices.to_numpy(), some["latency_ms"].to_numpy()
    order = np.lexsort((values, codes))
    first = np.flatnonzero(np.diff(codes[order], prepend=-1))
    size = np.diff(first, append=len(codes))
    chosen = pa.array(order[first])
    return pa.table(
        {
            "site": keys[0].take(chosen),
            "client_id": keys[1].take(chosen),
            "latency_p50_ms": values[order[first + (size - 1) // 2]],
            "latency_p95_ms": values[order[first + ((size - 1) * 95) // 100]],
        }
    )


_READERS = {
    "connections": (_connections,),
    "keepalive": (_keepalive,),
    "violations": (_violations,),
    "findings": (_findings,),
    "sequences": (_sequences,),
    "losses": (_lost, _missed),
    "readings": (_readings,),
    "latency": (_latency,),
}
