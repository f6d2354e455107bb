"""What the report shows of single rows: findings, broken statements, order.

Each task picks some and writes them as JSON, with the packets around where it has them;
`merge` keeps the first of all tasks.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..audit.envelopes import unpack
from ..audit.rows import dictionary, grouped
from . import strips

SCHEMA = pa.schema([("what", pa.string()), ("rank", pa.int64()), ("text", pa.string())])
# Of each kind, in the report; `violation` of each statement.
_MOST = {"finding": 1000, "violation": 8, "strip": 40}
_AROUND = 4
_STRIP_PACKETS = 3000
_PACKET = (
    *("ts", "number", "direction", "packet_type", "qos", "dup", "packet_id", "topic"),
    "payload_bytes",
)
_MESSAGE = ("first_sent", "number", "direction", "qos", "packet_id", "topic", "sequence")


def partial(tables, packets=None, messages=None):
    """Rows of `SCHEMA` for some tables of one task, or None.

    `packets` are all packets of the clients seen by it, or `messages` all of its topics.
    """
    rows = []
    if "findings" in tables:
        found = _earliest(tables["findings"], "first_seen", _MOST["finding"])
        rows += [("finding", *one) for one in found]
    if "violations" in tables:
        rows += _violations(tables["violations"], packets, messages)
    return _table(rows) if rows else None


def _table(rows):
    return pa.table([pa.array(one) for one in zip(*rows, strict=True)], schema=SCHEMA)


def merge(tables):
    """The earliest of each kind (strips: the worst)."""
    rows = pa.concat_tables(tables).sort_by("rank").to_pylist() if tables else []
    kept, counts = [], {}
    for row in rows:
        counts[row["what"]] = counts.get(row["what"], 0) + 1
        if counts[row["what"]] <= _MOST[row["what"].partition(":")[0]]:
            kept.append((row["what"], row["rank"], row["text"]))
    return _table(kept) if kept else SCHEMA.empty_table()


def shown(rows):
    """{kind: list of dicts} for the report."""
    found = {what: [] for what in _MOST}
    for row in rows.to_pylist():
        found[row["what"].partition(":")[0]].append(json.loads(row["text"]))
    return found


def _earliest(table, ts, most):
    order = pc.sort_indices(table, [(ts, "ascending")]).slice(0, most)
    chosen = table.take(order)
    ranks = chosen[ts].cast(pa.int64()).to_pylist()
    for rank, row in zip(ranks, dicts(chosen), strict=True):
        yield rank or 0, _text(row)


def dicts(table):
    """The rows of a table as dicts, times as text."""
    columns = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = pc.strftime(column, "%Y-%m-%d %H:%M:%S")
            column = pc.utf8_slice_codeunits(column, 0, 23)
        columns[name] = column.to_pylist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _text(row):
    return json.dumps(row, ensure_ascii=True)


def _violations(table, packets, messages):
    requirement = table["requirement"]
    if pa.types.is_dictionary(requirement.type):
        requirement = requirement.cast(pa.string())
    found = []
    for name in pc.unique(requirement).to_pylist():
        some = table.filter(pc.equal(requirement, name))
        for rank, text in _earliest(some, "ts", _MOST["violation"]):
            row = json.loads(text)
            row["around"] = _around(row, packets, messages)
            found.append(("violation:" + name, rank, _text(row)))
    return found


def _around(row, packets, messages):
    # The packets of its connection, or the messages of its client and topic, beside it.
    if packets is not None:
        same = [_is(packets, name, row[name]) for name in ("site", "connection")]
        names, table = [*_PACKET], packets
    elif messages is not None:
        same = [_is(messages, name, row[name]) for name in ("site", "client_id", "topic")]
        names, table = [*_MESSAGE], messages
    else:
        return []
    mask = same[0]
    for one in same[1:]:
        mask = pc.and_(mask, one)
    some = table.filter(pc.fill_null(mask, False))
    number = some["number"].to_numpy()
    order = np.argsort(number if packets is not None else some["position"].to_numpy())
    places = np.flatnonzero(number[order] == row["number"])
    at = int(places[0]) if len(places) else 0
    chosen = order[max(0, at - _AROUND) : at + _AROUND + 1]
    rows = dicts(some.select(names).take(pa.array(chosen)))
    return [{"ts": one.pop("first_sent", one.get("ts")), **one} for one in rows]


def _is(table, name, value):
    column = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    return pc.is_null(column) if value is None else pc.equal(column, value)


def order_strips(packets, messages):
    """Rows of `SCHEMA`: where a subscriber's readings were not 1, 2, 3; or None."""
    rows = []
    for weight, key in _suspects(messages):
        site, client, topic, qos = key
        mask = pc.and_(_is(packets, "topic", topic), _is(packets, "client_id", client))
        mask = pc.and_(mask, pc.and_(_is(packets, "site", site), pc.equal(packets["qos"], qos)))
        mask = pc.and_(mask, _is(packets, "direction", "s2c"))
        some = packets.filter(pc.fill_null(mask, False))
        some = some.sort_by([("ts", "ascending"), ("number", "ascending")])
        some = some.slice(0, _STRIP_PACKETS)
        fields = unpack(some["envelope"])
        is_reading = some["envelope"].is_valid().to_pylist()
        numbers = zip(fields["boot"].tolist(), fields["sequence"].tolist(), strict=True)
        readings = [n if one else (None, None) for n, one in zip(numbers, is_reading, strict=True)]
        wanted = {"site": site, "client_id": client, "topic": topic, "qos": qos}
        dups, ids = some["dup"].to_pylist(), some["packet_id"].to_pylist()
        found = strips.strip(wanted, dups, ids, some["payload_hash"].to_pylist(), readings)
        if found:
            rows.append(("strip", -weight, _text(found)))
    return _table(rows) if rows else None


def _suspects(messages):
    # (weight, key) of topics of a subscriber: repeats count little, leaps and returns much.
    some = messages.filter(pc.equal(messages["direction"].cast(pa.string()), "s2c"))
    if not len(some):
        return []
    keys = [dictionary(some[name]) for name in ("site", "client_id", "topic")]
    qos = some["qos"].to_numpy()
    code = grouped(*(codes for codes, _ in keys), qos)
    order = np.lexsort((some["position"].to_numpy(), code))
    code = code[order]
    boot, sequence = (
        some[name].combine_chunks().fill_null(-1).to_numpy()[order]
        for name in ("boot", "sequence")
    )
    leap = np.diff(sequence)
    is_next = (np.diff(code) == 0) & (np.diff(boot) == 0) & (sequence[1:] >= 0)
    weight = np.minimum(some["times_dup"].to_numpy()[order], 1).astype(np.int64)
    weight[1:] += np.where(is_next & (leap != 1), np.where(leap < 1, 9, 3), 0)
    sums = np.bincount(code, weight).astype(np.int64)
    worst = np.argsort(-sums, kind="stable")[: _MOST["strip"]]
    first = order[np.unique(code, return_index=True)[1]]
    found = []
    for group in worst[sums[worst] > 0].tolist():
        names = [
            values[codes[first[group]]].as_py() if codes[first[group]] >= 0 else None
            for codes, values in keys
        ]
        found.append((int(sums[group]), (*names, int(qos[first[group]]))))
    return found
