"""The tables of an audit, and what its tasks told -> the data that a page shows.

No job of Spark: only `devices` and `captures` are read, small as they are.  What comes
out is plain lists and dicts, made of JSON's types only.
"""

import csv
import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from .. import places, schemas
from ..places import place
from . import examples, timeline
from .devices import STATES

DEVICES = 200_000  # rows of the device table; the worst come first
_FILES = 500
_GROUPS = 200
_REQUIREMENTS = Path(__file__).resolve().parents[3] / "docs" / "requirements.tsv"


def collect(out, result, since=None, limits=None):
    """-> the report's data for the tables under `out`.

    `result` is the audit's `outcome.Result`, `since` the folder of an earlier audit,
    `limits` {finding: how many are allowed}.
    """
    devices = read(out, "devices")
    step_s, moments = timeline.shown(result.facts.get("timeline", timeline.SCHEMA.empty_table()))
    rows = examples.shown(result.facts.get("examples", examples.SCHEMA.empty_table()))
    ordered = _worst_first(devices)
    violations = _statements_broken(out)
    broken = {row["requirement"] for row in violations}
    names = [name for name in schemas.DEVICES.names if name != "site"]
    return {
        "rows": result.rows,
        "findings": result.findings,
        "limits": limits or {},
        "span": _span(devices, moments, step_s),
        "files": _files(out),
        "notes": notes(out),
        "devices": _columns(ordered.slice(0, DEVICES).select(["site", *names])),
        "device_count": len(devices),
        "states": _states(devices),
        "groups": {name: _groups(devices, name) for name in ("firmware", "site")},
        "step_s": step_s,
        "moments": moments,
        "losses": together(rows["loss"]),
        "troubles": rows["finding"],
        "violations": violations,
        "examples": sorted(rows["violation"], key=lambda row: row["requirement"]),
        "strips": rows["strip"],
        "statements": {name: text for name, text in statements().items() if name in broken},
        "since": _changes(devices, since) if since else None,
    }


def read(out, name, columns=None):
    """A written table as an Arrow table, its columns those of the schema."""
    schema = schemas.TABLES[name]
    with places.copied_here(place(out) / name) as folder:
        found = ds.dataset(folder, schema=schema, partitioning="hive", format="parquet")
        return found.to_table(columns=columns)


def statements(path=_REQUIREMENTS):
    """{requirement: its statement}; empty where the list is not at hand."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as stream:
        return {row["id"]: row["statement"] for row in csv.DictReader(stream, delimiter="\t")}


def notes(out):
    """What was not read, in sentences: nothing is passed over without a word."""
    gaps = read(out, "gaps", ["kind", "connection", "bytes"])
    found = []
    for kind, text in _NOTES.items():
        some = gaps.filter(pc.equal(gaps["kind"], kind))
        if some.num_rows:
            connections = pc.count_distinct(some["connection"]).as_py()
            found.append(text.format(connections, pc.sum(some["bytes"]).as_py()))
    captures = read(out, "captures")
    for row in captures.filter(pc.match_like(captures["counter"], "mqtt_on_port_%")).to_pylist():
        port = row["counter"].rpartition("_")[2]
        text = "{}: MQTT on port {}, which --ports does not name"
        found.append(text.format(row["capture"], port))
    return found


_NOTES = {
    "ENCRYPTED": "{:,} connections are encrypted (TLS) and were not judged ({:,} bytes seen)",
    "UNREAD": "{:,} connections began before the capture, or go on behind damage: "
    "{:,} bytes of them could not be understood",
    "NOT_MQTT": "{:,} connections on the ports given are no MQTT ({:,} bytes seen)",
}


_SAME = (
    *("site", "published_by", "topic", "client_id", "kind", "qos", "sure", "why"),
    *("device", "boot", "stream"),
)
_NEAR_S = 60


def together(losses):
    """Rows of `losses`, in order of time; those that follow each other as one, with `until`."""
    found, last = [], {}
    for row in losses:
        key = tuple(row[name] for name in _SAME)
        before = last.get(key)
        if before is not None and _follows(before, row):
            before["until"] = row["ts"]
            before["last_sequence"] = row["last_sequence"]
            before["messages"] += row["messages"]
        else:
            last[key] = {**row, "until": None}
            found.append(last[key])
    return found


def _follows(before, row):
    if row["first_sequence"] is not None:
        return row["first_sequence"] == before["last_sequence"] + 1
    times = (before["until"] or before["ts"], row["ts"])
    begin, end = (datetime.datetime.fromisoformat(one) for one in times)
    return (end - begin).total_seconds() < _NEAR_S


def _time(moment):
    return moment.strftime("%Y-%m-%d %H:%M:%S") if moment else None


def _span(devices, moments, step_s):
    first, last = (pc.min(devices["first_seen"]).as_py(), pc.max(devices["last_seen"]).as_py())
    if first is None and moments:
        stamps = pa.array([moments[0]["at"], moments[-1]["at"] + step_s], pa.timestamp("s"))
        first, last = stamps.to_pylist()
    return [_time(first), _time(last)]


def _worst_first(devices):
    rank = pc.index_in(devices["state"], pa.array(STATES))
    keys = ("lost", "missed", "violations", "troubles", "duplicates", "incomplete", "refused")
    order = [("rank", "ascending"), *((name, "descending") for name in keys)]
    order += [("site", "ascending"), ("client_id", "ascending")]
    found = devices.append_column("rank", rank)
    return found.take(pc.sort_indices(found, order)).drop_columns(["rank"])


def _columns(table):
    columns = []
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            column = pc.utf8_slice_codeunits(pc.strftime(column, "%Y-%m-%d %H:%M:%S"), 0, 19)
        elif pa.types.is_floating(column.type):
            column = pc.round(column, 1)
        columns.append(column.to_pylist())
    return {"columns": table.column_names, "data": list(zip(*columns, strict=True))}


def _states(devices):
    counts = {
        row["values"]: row["counts"] for row in pc.value_counts(devices["state"]).to_pylist()
    }
    return {state: counts.get(state, 0) for state in STATES}


def _groups(devices, name):
    some = devices.filter(pc.is_valid(devices[name]))
    some = some.append_column("unwell", pc.not_equal(some["state"], "well").cast(pa.int64()))
    wanted = [("unwell", "sum"), ("lost", "sum"), ("missed", "sum"), ("readings", "sum")]
    found = some.group_by(name).aggregate([("client_id", "count", _ALL), *wanted])
    found = found.rename_columns([name, "devices", *(one[0] for one in wanted)])
    return (
        found.sort_by([("unwell", "descending"), (name, "ascending")])
        .slice(0, _GROUPS)
        .to_pylist()
    )


_ALL = pc.CountOptions(mode="all")


def _files(out):
    captures = read(out, "captures")
    files: dict[tuple, dict] = {}
    for row in captures.to_pylist():
        one = files.setdefault((row["site"], row["capture"]), {"frames": 0, "errors": 0})
        if row["counter"] in ("frames", "lines"):
            one["frames"] += row["count"]
        elif row["counter"] == "errors":
            one["errors"] += row["count"]
        elif row["counter"] == "not_read":
            one["said"] = "not read: " + row["detail"]
        elif row["counter"] == "error" and "said" not in one:
            one["said"] = "byte %d: %s" % (row["offset"], row["detail"])
    rows = [
        {"site": site, "file": capture, **one, "said": one.get("said")}
        for (site, capture), one in files.items()
    ]
    rows.sort(key=lambda row: (row["said"] is None, -row["errors"], row["file"]))
    return rows[:_FILES]


def _statements_broken(out):
    table = read(out, "violations", ["site", "requirement", "by", "client_id"])
    keys = ["requirement", "by"]
    found = table.group_by(keys).aggregate([("site", "count"), ("client_id", "count_distinct")])
    found = found.rename_columns([*keys, "times", "clients"])
    return found.sort_by([("times", "descending"), ("requirement", "ascending")]).to_pylist()


def _changes(devices, since):
    """What is otherwise than in the earlier audit under `since`."""
    before = {(row["site"], row["client_id"]): row for row in _known(read(since, "devices"))}
    now = {(row["site"], row["client_id"]): row for row in _known(devices)}
    rows = []
    for key in sorted(now.keys() | before.keys(), key=repr):
        old, new = before.get(key), now.get(key)
        change = _change(old, new)
        if change:
            last = new or old or {}
            row = {"change": change, "site": key[0], "device": key[1]}
            rows.append(row | {"why": last.get("why"), "last seen": _time(last.get("last_seen"))})
    counts = {name: sum(row["change"] == name for row in rows) for name in _CHANGES}
    rows.sort(key=lambda row: _CHANGES.index(row["change"]))
    return {"counts": counts, "rows": rows[:2000]}


_CHANGES = ("worse", "not seen any more", "new", "better")


def _known(table):
    some = table.filter(pc.is_valid(table["client_id"]))
    return some.select(["site", "client_id", "state", "why", "last_seen"]).to_pylist()


def _change(old, new):
    if old is None or new is None:
        return "new" if old is None else "not seen any more"
    was, now = STATES.index(old["state"]), STATES.index(new["state"])
    return None if was == now else ("worse" if now < was else "better")
