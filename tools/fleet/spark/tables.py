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
from . import pack

WRITTEN = "written"  # name of the rows that tell of files
_FRESH = "_fresh"  # Spark, pandas and pyarrow pass over names with an underscore
# Large tables are parted by the day of a time stamp.
DAY_COLUMNS = {"packets": "ts", "flows": "first_sent", "readings": "ts"}


@dataclass(frozen=True)
class Sink:
    """Where the tasks of one audit write: `out`, and the `names` of the tables."""

    out: str
    names: tuple = tuple(schemas.TABLES)

    @property
    def fresh(self):
        """The folder with the tables that nobody sees yet."""
        return place(self.out) / _FRESH


class Outbox:
    """The tables of one task; with `sink` None they become packed rows instead."""

    def __init__(self, sink):
        self._sink = sink
        self._writers, self._rows, self._counts = {}, Counter(), Counter()
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

    def tables(self):
        """{name: all rows taken so far}."""
        return {name: _joined(parts) for name, parts in self.taken.items()}

    def _writer(self, name, schema):
        if name not in self._writers:
            folder = self._sink.fresh / name
            self._writers[name] = parquet.Writer(folder, schema, DAY_COLUMNS.get(name))
        return self._writers[name]

    def finish(self):
        """-> [(name, bucket, table)] for `pack.rows`: what was written, or the tables."""
        if not self._writers:
            return self.packed
        files = {name: writer.finish() for name, writer in self._writers.items()}
        told = {"files": files, "rows": self._rows, "counts": self._counts}
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


def publish(sink, packed, shows_empty=True):
    """Show what all tasks wrote -> `outcome.Result`.

    `packed` are the rows that came out, as one Arrow table (name, bucket, part).
    `shows_empty`: a table without rows still shows its columns.
    """
    result, counts = outcome.Result(), Counter()
    files = {name: [] for name in sink.names}
    rows = Counter()
    for name, part in zip(packed["name"].to_pylist(), packed["part"].to_pylist(), strict=True):
        found = pack.load([part])
        if name != WRITTEN:
            result.facts[name] = found
            continue
        one = json.loads(found["told"][0].as_py())
        rows.update(one["rows"])
        counts.update(one["counts"])
        for name, written in one["files"].items():
            files[name] += written
    for name, written in files.items():
        folder = sink.fresh / name
        parquet.publish(folder, written)
        if shows_empty and not written:
            parquet.write_empty(folder, schemas.TABLES[name], name in DAY_COLUMNS)
    for name in files:
        replace(sink.fresh / name, place(sink.out) / name)
    discard(sink)
    result.rows = {name: rows[name] for name in sink.names}
    result.findings = outcome.findings(counts)
    return result


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
