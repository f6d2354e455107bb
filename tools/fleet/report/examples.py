"""What the report shows of single rows: findings, broken statements, order.

Each task picks some and writes them as JSON, with the packets around where it has them;
`merge` keeps the first of all tasks.
"""

import json
from collections import Counter
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..audit.envelopes import unpack
from ..audit.rows import dictionary, grouped

SCHEMA = pa.schema([("what", pa.string()), ("rank", pa.int64()), ("text", pa.string())])
# Of each kind, in the report; `violation` of each statement.
_MOST = {"finding": 1000, "violation": 8, "strip": 40}
_AROUND = 4
_STRIP_PACKETS = 3000
_BEFORE, _AFTER, _FAR_APART = 4, 20, 10_000  # in a strip
_PACKET = "ts number direction packet_type qos dup packet_id topic payload_bytes".split()
_MESSAGE = "first_sent number direction qos packet_id topic sequence".split()


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
    kept, counts = [], Counter()
    for row in pa.concat_tables(tables).sort_by("rank").to_pylist():
        counts[row["what"]] += 1
        if counts[row["what"]] <= _MOST[row["what"].partition(":")[0]]:
            kept.append(row)
    return pa.Table.from_pylist(kept, SCHEMA)


def shown(rows):
    """{kind: list of dicts} of what is merged, or None, for the report."""
    found = {what: [] for what in _MOST}
    for row in rows.to_pylist() if rows else ():
        found[row["what"].partition(":")[0]].append(json.loads(row["text"]))
    return found


def _earliest(table, ts, most):
    order = pc.sort_indices(table, [(ts, "ascending")]).slice(0, most)
    chosen = table.take(order)
    ranks = chosen[ts].cast(pa.int64()).to_pylist()
    for rank, row in zip(ranks, dicts(chosen), strict=True):
        yield rank or 0, json.dumps(row)


def dicts(table):
    """The rows of a table as dicts, times as text."""
    return timed(table, 23).to_pylist()


def timed(table, size):
    """The table, its times as text of so many characters."""
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            text = pc.strftime(table.column(at), "%Y-%m-%d %H:%M:%S")
            table = table.set_column(at, field.name, pc.utf8_slice_codeunits(text, 0, size))
    return table


def _violations(table, packets, messages):
    found = []
    for name in pc.unique(table["requirement"]).to_pylist():
        some = _where(table, {"requirement": name})
        for rank, text in _earliest(some, "ts", _MOST["violation"]):
            row = json.loads(text)
            row["around"] = _around(row, packets, messages)
            found.append(("violation:" + name, rank, json.dumps(row)))
    return found


def _around(row, packets, messages):
    # The packets of its connection, or the messages of its client and topic, beside it.
    if packets is None and messages is None:
        return []
    whose = ("site", "client_id", "topic") if packets is None else ("site", "connection")
    table, names = (messages, _MESSAGE) if packets is None else (packets, _PACKET)
    some = _where(table, {name: row[name] for name in whose})
    order = np.argsort(some["position" if packets is None else "number"].to_numpy())
    places = np.flatnonzero(some["number"].to_numpy()[order] == row["number"])
    at = int(places[0]) if len(places) else 0
    chosen = order[max(0, at - _AROUND) : at + _AROUND + 1]
    rows = dicts(some.select(names).take(pa.array(chosen)))
    return [{"ts": one.pop("first_sent", one.get("ts")), **one} for one in rows]


def _where(table, values):
    # The rows with these values in the columns.
    masks = []
    for name, value in values.items():
        column = table[name]
        masks.append(pc.is_null(column) if value is None else pc.equal(column, value))
    return table.filter(reduce(pc.and_kleene, masks))


def order_strips(packets, messages):
    """Rows of `SCHEMA`: where a subscriber's readings were not 1, 2, 3; or None."""
    rows = []
    for weight, wanted in _suspects(messages):
        some = _where(packets, wanted | {"direction": "s2c"})
        some = some.sort_by([("ts", "ascending"), ("number", "ascending")])
        some = some.slice(0, _STRIP_PACKETS)
        fields = unpack(some["envelope"])
        is_reading = some["envelope"].is_valid().to_pylist()
        numbers = zip(fields["boot"].tolist(), fields["sequence"].tolist(), strict=True)
        readings = [n if one else (None, None) for n, one in zip(numbers, is_reading, strict=True)]
        names = ("dup", "packet_id", "payload_hash")
        dups, ids, hashes = (some[name].to_pylist() for name in names)
        found = strip(wanted, dups, ids, hashes, readings)
        if found:
            rows.append(("strip", -weight, json.dumps(found)))
    return _table(rows) if rows else None


def _suspects(messages):
    # (weight, values) of a subscriber's topics: repeats count little, gaps and returns much.
    some = _where(messages, {"direction": "s2c"})
    if not len(some):
        return
    names = ("site", "client_id", "topic")
    keys = [dictionary(some[name]) for name in names]
    qos = some["qos"].to_numpy()
    code = grouped(*(codes for codes, _ in keys), qos)
    order = np.lexsort((some["position"].to_numpy(), code))
    code = code[order]
    columns = (some[name].combine_chunks().fill_null(-1) for name in ("boot", "sequence"))
    boot, sequence = (one.to_numpy()[order] for one in columns)
    leap = np.diff(sequence)
    is_next = (np.diff(code) == 0) & (np.diff(boot) == 0) & (sequence[1:] >= 0)
    weight = np.minimum(some["times_dup"].to_numpy()[order], 1).astype(np.int64)
    weight[1:] += np.where(is_next & (leap != 1), np.where(leap < 1, 9, 3), 0)
    sums = np.bincount(code, weight).astype(np.int64)
    worst = np.argsort(-sums, kind="stable")[: _MOST["strip"]]
    first = order[np.unique(code, return_index=True)[1]]
    for group in worst[sums[worst] > 0].tolist():
        row = some.select([*names, "qos"]).slice(first[group], 1).to_pylist()[0]
        yield int(sums[group]), row


def strip(wanted, dups, packet_ids, hashes, readings):
    """In which order a subscriber saw a topic's messages, around the first place that is out of
    order -> dict, or None.

    Each cell is [label, kind]: `new`, `again` (repeat with DUP), `twice` (repeat without),
    `late` (after a later one), `lost` (a number that was left out).
    """
    cells = _cells(dups, packet_ids, hashes, readings)
    first = next((at for at, cell in enumerate(cells) if cell[1] != "new"), None)
    if first is None:
        return None
    begin = max(0, first - _BEFORE)
    return wanted | {"cells": cells[begin : first + _AFTER], "before": begin}


def _cells(dups, packet_ids, hashes, readings):
    cells, seen, last = [], set(), None
    arrived = {reading for reading in readings if reading[1] is not None}
    for dup, packet_id, payload, reading in zip(dups, packet_ids, hashes, readings, strict=True):
        is_reading = reading[1] is not None
        key = reading if is_reading else payload
        label = str(reading[1] if is_reading else packet_id if packet_id is not None else "·")
        if key in seen and (is_reading or dup):
            cells.append([label, "again" if dup else "twice"])
            continue
        seen.add(key)
        if is_reading and last and reading < last:
            cells.append([label, "late"])
            continue
        if is_reading:
            cells += _left_out(last, reading, arrived)
            last = reading
        cells.append([label, "new"])
    return cells


def _left_out(last, reading, arrived):
    # Numbers between two that arrived, if they never come later.
    if not last or last[0] != reading[0]:
        return []
    # Numbers come from payloads: what is missing between them may be billions.
    count = reading[1] - last[1] - 1
    if count > _FAR_APART:
        return [["%d–%d" % (last[1] + 1, reading[1] - 1), "lost"]]
    missing = [n for n in range(last[1] + 1, reading[1]) if (reading[0], n) not in arrived]
    if len(missing) > 3:
        return [["%d–%d" % (missing[0], missing[-1]), "lost"]]
    return [[str(n), "lost"] for n in missing]
