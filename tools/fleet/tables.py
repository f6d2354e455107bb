"""The tables' files: tasks write them and say so, the driver shows them all at once.

Parquet folders parted by `site` and, where a table is large, by `day` (UTC), as Spark lays
them out.  What a task wrote lies in `_fresh` until `publish` puts it in the place of the
tables before; files of tasks that failed are deleted there.
"""

import json
import re
import shutil
import uuid
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import dataset, fs

from . import outcome, places, schemas
from .places import place

FRESH = "_fresh"  # Spark, pandas and pyarrow pass over names with an underscore
DAY_COLUMNS = {"packets": "ts", "flows": "first_sent", "readings": "ts"}
_DAY_US = 86_400_000_000
_HOLD_ROWS = 1_000_000
_FORM = {"compression": "zstd", "compression_level": 1}
# As Spark's ExternalCatalogUtils: what cannot stand in the name of a folder.
_SPECIAL = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")


def folder_name(column, value):
    """The name of the folder for one value of a column, such as `site=north%2Fgate`."""
    return "%s=%s" % (column, _SPECIAL.sub(lambda one: "%%%02X" % ord(one[0]), value))


class Outbox:
    """Takes the rows of one task, writes files that nobody sees yet, counts findings.

    What is of a table that it `leaves` to others is only taken.
    """

    def __init__(self, out, leaves=()):
        self._fresh, self._leaves = place(out) / FRESH, leaves
        self._task = uuid.uuid4().hex
        self._held, self._files = {}, {}
        self._rows, self._counts = Counter(), Counter()
        self.taken = {}

    def add(self, name, table):
        """Take rows of the table `name`; strings may come as dictionaries."""
        if not table.num_rows:
            return
        self.taken.setdefault(name, []).append(table)
        if name in self._leaves:
            return
        self._rows[name] += table.num_rows
        self._counts.update(outcome.count(name, table))
        held = self._held.setdefault(name, [])
        held.append(_typed(table, schemas.TABLES[name]))
        if sum(map(len, held)) >= _HOLD_ROWS:
            self._flush(name)

    def tables(self):
        """{name: all rows taken so far}"""
        return {name: joined(parts) for name, parts in self.taken.items()}

    def finish(self):
        """-> what was written and counted, for `publish`."""
        for name in self._held:
            self._flush(name)
        return {"files": self._files, "rows": dict(self._rows), "counts": dict(self._counts)}

    def _flush(self, name):
        if not self._held[name]:
            return
        table = pa.concat_tables(self._held[name]).unify_dictionaries().combine_chunks()
        self._held[name] = []
        written = self._files.setdefault(name, [])
        for folder, rows in _by_folder(table, DAY_COLUMNS.get(name)):
            target = "%s/part-%s-%05d.zstd.parquet" % (folder, self._task, len(written))
            written.append(target)
            (self._fresh / name / folder).mkdir(parents=True, exist_ok=True)
            schema = schemas.TABLES[name]
            _write(rows.drop_columns(["site"]), self._fresh / name / target, schema)


def joined(tables):
    """One table of several, in which a string may be coded in some parts only."""
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables([plain(table, table.schema) for table in tables])


def plain(table, schema):
    """The table with exactly the types of `schema`, no dictionaries."""
    kinds = [field.type for field in schema]
    kinds = [one.value_type if pa.types.is_dictionary(one) else one for one in kinds]
    return table.select(schema.names).cast(pa.schema(zip(schema.names, kinds, strict=True)))


def _typed(table, schema):
    # Types of the schema, but dictionaries of strings stay what they are.
    def typed(column, kind):
        # Parquet cannot write a dictionary that holds a null.
        is_coded = pa.types.is_dictionary(column.type)
        is_coded = is_coded and not any(one.dictionary.null_count for one in column.chunks)
        return column if is_coded else column.cast(kind)

    return pa.table({field.name: typed(table[field.name], field.type) for field in schema})


def _by_folder(table, day_column):
    site = table["site"].combine_chunks()
    site = site if pa.types.is_dictionary(site.type) else site.dictionary_encode()
    day = np.zeros(len(table), np.int64)
    if day_column:
        day = table[day_column].cast(pa.int64()).to_numpy() // _DAY_US
    first_day = int(day.min())
    width = int(day.max()) - first_day + 1
    key = site.indices.to_numpy().astype(np.int64) * width + day - first_day
    found = np.unique(key)
    for one in found.tolist():
        folder = folder_name("site", site.dictionary[one // width].as_py())
        if day_column:
            date = np.datetime64(one % width + first_day, "D")
            folder += "/" + folder_name("day", str(date))
        yield folder, table if len(found) == 1 else table.filter(pa.array(key == one))


def _repeats(field):
    # For other columns, building Parquet's dictionaries costs more than all the rest.
    kind = field.type
    is_narrow = pa.types.is_integer(kind) and kind.bit_width < 64
    return pa.types.is_dictionary(kind) or is_narrow or field.name.endswith("_bytes")


def options(schema):
    """How a file of such rows is written."""
    return _FORM | {"use_dictionary": [field.name for field in schema if _repeats(field)]}


def _write(rows, path, schema):
    # With Arrow's schema readers would make categories of texts.
    more = options(rows.schema) | {"store_schema": False}
    with path.open("wb") as stream, pq.ParquetWriter(stream, rows.schema, **more) as writer:
        writer.write_table(rows)
        meanings = {field.name: field.metadata[b"comment"].decode() for field in schema}
        told = {"fleet.version": str(schemas.VERSION), "fleet.columns": json.dumps(meanings)}
        writer.add_key_value_metadata(told)


def read(out, name, some=None):
    """A written table as an Arrow table, its columns (or some) those of the schema.

    A column that an older version had not is null.
    """
    schema, path = schemas.TABLES[name], place(out) / name
    wanted = pa.schema([schema.field(one) for one in some or schema.names])
    if not places.files(path):
        return wanted.empty_table()
    parts = dataset.partitioning(pa.schema([("site", pa.string())]), flavor="hive")
    where = getattr(path, "path", str(path)), schema, "parquet", getattr(path, "store", None)
    return dataset.dataset(*where, parts).to_table(wanted.names).cast(wanted)


def publish(out, told, report=None):
    """Show what all tasks wrote -> `outcome.Result`; `told` is what each `finish` gave.

    `report(result, folder)` writes files about the tables into the folder that they are in,
    before any of them are shown, and gives their names.  Where no packet was found, the
    tables of an earlier audit stay, and these where they were written (`Result.folder`).
    """
    out, fresh = place(out), place(out) / FRESH
    rows, counts, files, facts = Counter(), Counter(), set(), {}
    for one in told:
        rows.update(one["rows"])
        counts.update(one["counts"])
        files |= {"%s/%s" % (name, path) for name in one["files"] for path in one["files"][name]}
        facts |= one.get("facts", {})
    fresh.mkdir(parents=True, exist_ok=True)
    for path, name, *_ in places.files(fresh):
        if name not in files:  # left by a task that failed
            _remove(path)
    for name, schema in schemas.TABLES.items():
        if not rows[name]:
            # A file without rows, so that the folder shows the table's columns.
            day = [pa.field("day", pa.date32())] if name in DAY_COLUMNS else []
            (fresh / name).mkdir(parents=True, exist_ok=True)
            shown = pa.schema([*schema, *day]).empty_table()
            _write(shown, fresh / name / "empty.parquet", schema)
    found = {name: rows[name] for name in schemas.TABLES}
    result = outcome.Result(found, outcome.findings(counts), facts, out)
    if not rows["packets"] and places.files(out / "packets"):
        result.folder = fresh
        return result
    written = report(result, fresh) if report else ()
    for name in (*schemas.TABLES, *written):
        _replace(fresh / name, out / name)
    discard(out)
    return result


def _replace(fresh, target):
    # By renaming.  A store cannot rename folders, and its move() needs a free place.
    if isinstance(target, places.Remote):
        _remove(target)
        for path, *_ in places.files(fresh):
            path.store.move(path.path, target.path + path.path.removeprefix(fresh.path))
        return
    if target.is_dir():
        target.replace(fresh.with_name(fresh.name + ".old"))
    fresh.replace(target)


def discard(out):
    """Delete what was written and not published, and what that replaced."""
    _remove(place(out) / FRESH)


def _remove(path):
    if isinstance(path, places.Remote):
        info = path.store.get_file_info(path.path)
        if info.type != fs.FileType.NotFound:
            (path.store.delete_file if info.is_file else path.store.delete_dir)(path.path)
    elif path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
