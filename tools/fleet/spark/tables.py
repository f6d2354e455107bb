"""The tables' files: tasks write them and say so, the driver shows them all at once.

A task hands its tables to an `Outbox`, which writes Parquet files that nobody sees yet and
gives one row of Spark that names and counts them.  When all tasks are done, `publish`
puts each table's folder in the place of the old one.
"""

import json
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

from .. import outcome, parquet, places, schemas
from ..places import place
from . import pack, sites

WRITTEN = "written"  # kind of the rows that tell of files
_FRESH = "_fresh"  # Spark, pandas and pyarrow pass over names with an underscore
# Large tables are parted by the day of a time stamp.
DAY_COLUMNS = {"packets": "ts", "flows": "first_sent", "readings": "ts"}


@dataclass(frozen=True)
class Sink:
    """Where the tasks of one audit write: `out`, and the `names` of the tables.

    `sites`: only these are written, each counted by itself; what is there of others stays.
    """

    out: str
    names: tuple = tuple(schemas.TABLES)
    sites: tuple | None = None

    @property
    def fresh(self):
        """The folder with the tables that nobody sees yet."""
        return place(self.out) / _FRESH


class Outbox:
    """The tables of one task; with `sink` None they become packed rows instead."""

    def __init__(self, sink):
        self._sink = sink
        self._writers, self._rows, self._counts = {}, Counter(), Counter()
        self._sites = {}
        self.packed = []
        self.taken = {}

    def add(self, name, table):
        """Take rows of the table `name`."""
        if not table.num_rows:
            return
        self.taken.setdefault(name, []).append(table)
        if self._sink is None:
            self.packed.append((name, 0, table))
        elif name in self._sink.names:
            schema = schemas.TABLES[name]
            self._writer(name, schema).add(table)
            self._rows[name] += table.num_rows
            self._counts.update(outcome.count(name, table))
            if self._sink.sites is not None:
                self._count_sites(name, table)

    def _count_sites(self, name, table):
        for site, some in sites.split(table):
            own = self._sites.setdefault(site, {"rows": Counter(), "counts": Counter()})
            own["rows"][name] += some.num_rows
            own["counts"].update(outcome.count(name, some))

    def tables(self):
        """{name: all rows taken so far}."""
        return {name: _joined(parts) for name, parts in self.taken.items()}

    def _writer(self, name, schema):
        if name not in self._writers:
            folder = self._sink.fresh / name
            self._writers[name] = parquet.Writer(folder, schema, DAY_COLUMNS.get(name))
        return self._writers[name]

    def finish(self):
        """-> [(kind, bucket, table)] for `pack.parts`: what was written, or the tables."""
        if not self._writers:
            return self.packed
        files = {name: writer.finish() for name, writer in self._writers.items()}
        told = {"files": files, "rows": self._rows, "counts": self._counts, "sites": self._sites}
        return [(WRITTEN, 0, pa.table({"told": [json.dumps(told)]}))]


def _joined(parts):
    return parts[0] if len(parts) == 1 else pa.concat_tables(_plain(part) for part in parts)


def _plain(table):
    # Strings that were dictionaries in one part only.
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def publish(sink, packed, shows_empty=True, report=None):
    """Show what all tasks wrote -> `outcome.Result`.

    `report(result, folder)` writes more files about the tables into the folder that they are in,
    before any of them are shown, and gives their names.

    `packed` are the rows that came out, an Arrow table of `schemas.PARTS`.
    `shows_empty`: a table without rows still shows its columns.  Where no packet was found,
    the tables of an earlier audit stay, and these where they were written (`Result.folder`).
    """
    result, counts = outcome.Result(), Counter()
    files = {name: [] for name in sink.names}
    rows = Counter()
    for kind, part in zip(packed["kind"].to_pylist(), packed["part"].to_pylist(), strict=True):
        found = pack.load([part])
        if kind != WRITTEN:
            result.facts[kind] = found
            continue
        one = json.loads(found["told"][0].as_py())
        rows.update(one["rows"])
        counts.update(one["counts"])
        for site, own in one["sites"].items():
            sums = result.sites.setdefault(site, {"rows": Counter(), "counts": Counter()})
            for what in sums:
                sums[what].update(own[what])
        for name, written in one["files"].items():
            files[name] += written
    for name, written in files.items():
        folder = sink.fresh / name
        parquet.publish(folder, written)
        if sink.sites is None and shows_empty and not written:
            parquet.write_empty(folder, schemas.TABLES[name], name in DAY_COLUMNS)
    result.rows = {name: rows[name] for name in sink.names}
    result.findings = outcome.findings(counts)
    result.folder = place(sink.out)
    if sink.sites is None and not rows["packets"] and (result.folder / "packets").exists():
        result.folder = sink.fresh
        return result
    told = report(result, sink.fresh) if report else ()
    for name in files:
        if sink.sites is None:
            replace(sink.fresh / name, place(sink.out) / name)
        else:
            _replace_sites(sink, name)
    for name in told:
        places.put(sink.fresh / name, place(sink.out) / name)
    discard(sink)
    return result


def _replace_sites(sink, name):
    # A site without rows has no folder; a table without rows has a file that shows columns.
    target = place(sink.out) / name
    target.mkdir(parents=True, exist_ok=True)
    for site in sink.sites:
        own = parquet.folder_name("site", site)
        if (sink.fresh / name / own).exists():
            replace(sink.fresh / name / own, target / own)
        else:
            places.remove(target / own)
    if any(one.name.startswith("site=") for one in target.iterdir()):
        places.remove(target / parquet.EMPTY)
    else:
        parquet.write_empty(target, schemas.TABLES[name], name in DAY_COLUMNS)


def discard(sink):
    """Delete what was written and not published."""
    places.remove(sink.fresh)


def replace(fresh, target):
    """Put the folder `fresh` in the place of `target`, by two renames."""
    target.parent.mkdir(parents=True, exist_ok=True)
    old = fresh.with_name(fresh.name + ".old")
    places.remove(old)
    if target.exists():
        target.replace(old)
    fresh.replace(target)
    places.remove(old)
