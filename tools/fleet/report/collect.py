"""The tables of an audit, and what its tasks told -> the data that a page shows.

No job of Spark: only `devices` and `captures` are read, small as they are.  What comes
out is plain lists and dicts, made of JSON's types only.
"""

import csv
import datetime
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from .. import outcome, places, schemas, tables
from . import examples, timeline
from .devices import STATES

DEVICES = 200_000  # rows of the device table; the worst come first
_MOST = {"captures": 500, "changed": 2000, "losses": 2000, "firmware": 200, "site": 200}
_REQUIREMENTS = Path(__file__).resolve().parents[3] / "docs" / "requirements.tsv"


class NoAudit(Exception):
    """A folder does not hold what an audit wrote; the text says what it lacks."""


def collect(out, result, before=None, limits=None):
    """-> the report's data for the tables under `out`.

    `result` is the audit's `outcome.Result`, `before` the `earlier` devices to compare with,
    `limits` {finding: how many are allowed}.  `taken` tells of each list that may be long how
    many of its rows are shown, and how many there are.
    """
    devices = tables.read(out, "devices")
    states = Counter(devices["state"].to_pylist())
    step_s, moments = timeline.shown(result.facts.get("timeline"))
    rows = examples.shown(result.facts.get("examples"))
    ordered = _worst_first(devices)
    violations = _statements_broken(out)
    broken = {row["requirement"] for row in violations}
    # Sites with connections whose CONNECT is before the captures: their clients are not known.
    told = tables.read(out, "findings", ["site", "finding"])
    begun = set(told["site"].filter(pc.equal(told["finding"], "began_before")).to_pylist())
    changes = None if before is None else _changes(devices, before, begun)
    lists = {"captures": _files(out), "changed": changes["rows"] if changes else []}
    lists |= {name: _groups(devices, name) for name in ("firmware", "site")}
    shown = {name: some[: _MOST[name]] for name, some in lists.items()}
    taken = {name: (len(shown[name]), len(some)) for name, some in lists.items()}
    causes = tables.read(out, "causes")
    causes = causes.sort_by([("messages", "descending"), ("cause", "ascending")])
    losses, unknown, taken["losses"], taken["unknowable"] = _losses(out)
    told = [row for row in rows["finding"] if row["sure"] == "not_knowable"]
    troubles = [row for row in rows["finding"] if row["sure"] != "not_knowable"]
    taken["findings"] = len(rows["finding"]), result.rows.get("findings", 0)
    names = [name for name in schemas.DEVICES.names if name != "site"]
    return {
        "rows": result.rows,
        "findings": result.findings,
        "limits": limits or {},
        "span": _span(devices, moments, step_s),
        "files": shown["captures"],
        "notes": notes(out) + (_no_common_site(devices, before) if changes else []),
        "devices": _columns(ordered.slice(0, DEVICES).select(["site", *names])),
        "device_count": len(devices),
        "states": {state: states[state] for state in STATES},
        "groups": {name: shown[name] for name in ("firmware", "site")},
        "step_s": step_s,
        "moments": moments,
        "causes": examples.dicts(causes.slice(0, _MOST["losses"])),
        "losses": together(losses),
        "troubles": troubles,
        "unknown": together(unknown) + told,
        "violations": violations,
        "examples": sorted(rows["violation"], key=lambda row: row["requirement"]),
        "strips": rows["strip"],
        "statements": {name: text for name, text in statements().items() if name in broken},
        "since": changes and changes | {"rows": shown["changed"]},
        "taken": taken,
    }


def earlier(out):
    """The devices of an earlier audit under `out`.  Raises NoAudit."""
    if not any(name.endswith(".parquet") for _, name, *_ in places.files(out / "devices")):
        text = "%s holds no tables of an audit (no folder devices, or devices is empty)"
        raise NoAudit(text % out)
    try:
        devices = tables.read(out, "devices", ["site", "client_id", "state", "why", "last_seen"])
    except pa.ArrowException as error:
        text = "%s/devices cannot be read: %s" % (out, str(error).splitlines()[0])
        raise NoAudit(text) from None
    known = pc.and_(pc.is_in(devices["state"], pa.array(STATES)), pc.is_valid(devices["site"]))
    if not pc.all(pc.fill_null(known, False), min_count=0).as_py():
        raise NoAudit("%s is of another version: audit its captures again" % out)
    return devices


def _no_common_site(devices, before):
    sites, old = (pc.unique(one["site"]).to_pylist() for one in (devices, before))
    if not sites or not old or set(sites) & set(old):
        return []
    text = "no site is the same as in the audit before (there {}, here {}), so no device is"
    return [text.format(*(", ".join(sorted(some)[:5]) for some in (old, sites)))]


def statements(path=_REQUIREMENTS):
    """{requirement: its statement}; empty where the list is not at hand."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as stream:
        return {row["id"]: row["statement"] for row in csv.DictReader(stream, delimiter="\t")}


def notes(out):
    """What was not read, in sentences: nothing is passed over without a word."""
    gaps = tables.read(out, "gaps", ["kind", "connection", "bytes"])
    found = []
    for kind, text in _NOTES.items():
        some = gaps.filter(pc.equal(gaps["kind"], kind))
        if some.num_rows:
            connections = pc.count_distinct(some["connection"]).as_py()
            found.append(text.format(connections, pc.sum(some["bytes"]).as_py()))
    captures = tables.read(out, "captures", ["capture", "counter", "count"])
    wanted = [("capture", "count_distinct"), ("capture", "min"), ("count", "sum")]
    for row in captures.group_by("counter").aggregate(wanted).sort_by("counter").to_pylist():
        more = row["capture_count_distinct"] - 1
        where = row["capture_min"] + (f" and {more:,} files more" if more else "")
        text = _not_looked_at(row["counter"], row["count_sum"])
        found += ["%s: %s" % (where, text)] if text else []
    return found


def _not_looked_at(counter, count):
    for begin in filter(counter.startswith, _COUNTED):
        return _COUNTED[begin].format(_WORDS.get(counter, counter.removeprefix(begin)), count)
    return None


# Counters of the table `captures` that an operator should know of.
_COUNTED = {
    "mqtt_on_port_": "MQTT on port {}, which --ports does not name",
    "link_type_": "{1:,} frames of link type {0} were not read",
    "inside_": "{1:,} frames inside {0} were not looked into",
    "unfinished": "its last record is not read: somebody wrote to it just now",
    "tcp_fragments": "{1:,} fragments of IP packets were not put together",
    "cut_frames": "{1:,} frames were recorded only in part: leave out the snapshot length (-s)",
}
_WORDS = {
    **{"link_type_9": "9 (PPP)", "link_type_105": "105 (Wi-Fi)", "link_type_239": "239 (NFLOG)"},
    **{"link_type_127": "127 (Wi-Fi with radiotap)", "inside_mpls": "MPLS", "inside_gre": "GRE"},
    **{"inside_pppoe": "PPPoE", "inside_ip_in_ip": "IP in IP", "inside_esp": "ESP (encrypted)"},
    **{"inside_vxlan": "VXLAN", "inside_geneve": "Geneve"},
}
_NOTES = {
    "ENCRYPTED": "{:,} connections are encrypted (TLS) and were not judged ({:,} bytes seen)",
    "UNREAD": "{:,} connections began before the capture, or go on behind damage: "
    "{:,} bytes of them could not be understood",
    "NOT_MQTT": "{:,} connections on the ports given are no MQTT ({:,} bytes seen)",
}


_SAME = "site published_by topic client_id kind qos sure why evidence device boot stream".split()
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


def _losses(out):
    # -> the first known and not knowable losses; how many of each are shown, and are there.
    found = tables.read(out, "losses").sort_by("ts")
    is_known = pc.not_equal(found["sure"], "not_knowable")
    parts = [found.filter(mask) for mask in (is_known, pc.invert(is_known))]
    shown = [examples.dicts(part.slice(0, _MOST["losses"])) for part in parts]
    return *shown, *((len(one), len(part)) for one, part in zip(shown, parts, strict=True))


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
    return devices.append_column("rank", rank).sort_by(order).drop_columns(["rank"])


def _columns(table):
    columns = examples.timed(table, 19).itercolumns()
    columns = [pc.round(one, 1) if pa.types.is_floating(one.type) else one for one in columns]
    rows = list(zip(*(one.to_pylist() for one in columns), strict=True))
    return {"columns": table.column_names, "data": rows}


def _groups(devices, name):
    some = devices.filter(pc.is_valid(devices[name]))
    some = some.append_column("unwell", pc.not_equal(some["state"], "well").cast(pa.int64()))
    wanted = [("unwell", "sum"), ("lost", "sum"), ("missed", "sum"), ("readings", "sum")]
    found = some.group_by(name).aggregate([("client_id", "count", _ALL), *wanted])
    found = found.rename_columns([name, "devices", *(one[0] for one in wanted)])
    return found.sort_by([("unwell", "descending"), (name, "ascending")]).to_pylist()


_ALL = pc.CountOptions(mode="all")


def _files(out):
    files: dict[tuple, dict] = {}
    # Places where bytes are missing, as `outcome` counts them.
    gaps = outcome.missing(tables.read(out, "gaps", ["site", "capture", "kind"]))
    missing = Counter(zip(gaps["site"].to_pylist(), gaps["capture"].to_pylist(), strict=True))
    for row in tables.read(out, "captures").to_pylist():
        key = row["site"], row["capture"]
        new = {"site": key[0], "file": key[1], "frames": 0, "errors": 0}
        one = files.setdefault(key, new | {"missing": missing[key], "said": None})
        counter = "frames" if row["counter"] == "lines" else row["counter"]
        if counter in ("frames", "errors"):
            one[counter] += row["count"]
        elif counter == "not_read":
            one["said"] = "not read: " + row["detail"]
        elif counter == "error":
            one["said"] = one["said"] or "byte %d: %s" % (row["offset"], row["detail"])
    rows = list(files.values())
    rows.sort(key=lambda row: (row["said"] is None, -row["errors"], -row["missing"], row["file"]))
    return rows


def _statements_broken(out):
    broken = tables.read(out, "violations", ["site", "requirement", "by", "client_id"])
    keys = ["requirement", "by"]
    found = broken.group_by(keys).aggregate([("site", "count"), ("client_id", "count_distinct")])
    found = found.rename_columns([*keys, "times", "clients"])
    return found.sort_by([("times", "descending"), ("requirement", "ascending")]).to_pylist()


def _changes(devices, earlier, begun_before):
    """What is otherwise than with the devices of an earlier audit.

    At the sites `begun_before` there are clients now that nobody knows by their id.
    """
    before, now = _known(earlier), _known(devices)
    nameless = set(earlier.filter(pc.is_null(earlier["client_id"]))["site"].to_pylist())
    rows = []
    for key in sorted(now.keys() | before.keys(), key=repr):
        old, new = before.get(key), now.get(key)
        change = _change(old, new, key[0] in begun_before, key[0] in nameless)
        if change:
            last = new or old
            row = {"change": change, "site": key[0], "device": key[1]}
            rows.append(row | {"why": last["why"], "last seen": _time(last["last_seen"])})
    counts = Counter(row["change"] for row in rows)
    told = [name for name in _CHANGES if counts[name] or name not in (_NOT_BY_ID, _KNOWN_NOW)]
    rows.sort(key=lambda row: _CHANGES.index(row["change"]))
    return {"counts": {name: counts[name] for name in told}, "rows": rows}


_GONE, _NEW = "not seen any more", "new"
_NOT_BY_ID, _KNOWN_NOW = "not seen by id", "new, or not known by id before"
_CHANGES = ("worse", _GONE, _NEW, "better", _NOT_BY_ID, _KNOWN_NOW)


def _known(table):
    # {(site, client id): row}
    some = table.filter(pc.is_valid(table["client_id"]))
    rows = some.select(["site", "client_id", "state", "why", "last_seen"]).to_pylist()
    return {(row["site"], row["client_id"]): row for row in rows}


def _change(old, new, is_begun_before, is_nameless):
    if old is None:
        return _KNOWN_NOW if is_nameless else _NEW
    if new is None:
        return _NOT_BY_ID if is_begun_before else _GONE
    was, now = STATES.index(old["state"]), STATES.index(new["state"])
    return None if was == now else ("worse" if now < was else "better")
