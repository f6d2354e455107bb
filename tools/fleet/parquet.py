"""Arrow tables -> Parquet folders parted by `site` and `day`, laid out as Spark does it.

The process that made the rows writes them, and they never become rows of the JVM.  Files
get their names at `publish`, so a folder never shows the files of a task that failed.
"""

import os
import re
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import places
from .places import place

_DAY_US = 86_400_000_000
EMPTY = "empty.parquet"
_PENDING = "_pending"  # Spark, pandas and pyarrow pass over names with an underscore
_HOLD_ROWS = 1_000_000
# As Spark's ExternalCatalogUtils: what cannot stand in the name of a folder.
_SPECIAL = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")


def folder_name(column, value):
    """The name of the folder for one value of a column, such as `site=north%2Fgate`."""
    return "%s=%s" % (column, _SPECIAL.sub(lambda one: "%%%02X" % ord(one[0]), value))


class Writer:
    """Takes the rows of one task and writes files of `schema` that nobody sees yet.

    `day_column` is the timestamp whose day (UTC) names the folder; None: only the site
    does.  Strings may come as dictionaries; they are written as strings.
    """

    def __init__(self, folder, schema, day_column):
        self._pending = place(folder) / _PENDING
        self._schema = schema
        self._day_column = day_column
        self._task = uuid.uuid4().hex
        self._tables, self._rows = [], 0
        self._written = []

    def add(self, table):
        """Take some rows."""
        if table.num_rows:
            self._tables.append(_typed(table, self._schema))
            self._rows += table.num_rows
        if self._rows >= _HOLD_ROWS:
            self._flush()

    def finish(self):
        """-> [(file written, its place in the folder)], for `publish`."""
        self._flush()
        return self._written

    def _flush(self):
        if not self._tables:
            return
        table = pa.concat_tables(self._tables).unify_dictionaries().combine_chunks()
        self._tables, self._rows = [], 0
        for folders, rows in _by_folder(table, self._day_column):
            name = "part-%s-%05d.zstd.parquet" % (self._task, len(self._written))
            self._pending.mkdir(parents=True, exist_ok=True)
            _write(rows, self._pending / name)
            self._written.append((name, "/".join([*folders, name])))


def publish(folder, written):
    """Show the files of all tasks; what is left of failed ones is deleted."""
    folder = place(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for parent in {target.rpartition("/")[0] for _, target in written}:
        (folder / parent).mkdir(parents=True, exist_ok=True)
    for name, target in written:
        (folder / _PENDING / name).replace(folder / target)
    discard(folder)
    (folder / "_SUCCESS").write_text("")  # as Spark does


def sync(folder):
    """Return when all files and folders under `folder` would outlast a power cut.

    What is written through Hadoop is safe, as its file systems understand it, when written.
    """
    folder = place(folder)
    if places.is_remote(folder):
        return
    for path in (folder, *folder.rglob("*")):
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def write_empty(folder, schema, has_day):
    """A file without rows, so that the folder shows the table's columns."""
    schema = schema.append(pa.field("day", pa.date32())) if has_day else schema
    place(folder).mkdir(parents=True, exist_ok=True)
    with places.made_here(place(folder) / EMPTY) as path:
        pq.write_table(schema.empty_table(), path, store_schema=False)


def clear(folder):
    """Delete the files that were published before."""
    for path in place(folder).iterdir():
        if path.name != _PENDING:
            places.remove(path)


def discard(folder):
    """Delete the files that were not published."""
    places.remove(place(folder) / _PENDING)


def _typed(table, schema):
    # Types of the schema, but dictionaries of strings stay what they are.
    arrays = []
    for field in schema:
        column = table[field.name]
        is_coded = pa.types.is_dictionary(column.type)
        arrays.append(column if is_coded else column.cast(field.type))
    return pa.table(arrays, names=schema.names)


def _by_folder(table, day_column):
    site = table["site"].combine_chunks()
    if not pa.types.is_dictionary(site.type):
        site = site.dictionary_encode()
    day = np.zeros(len(table), np.int64)
    if day_column:
        day = table[day_column].cast(pa.int64()).to_numpy() // _DAY_US
    first_day = int(day.min())
    width = int(day.max()) - first_day + 1
    key = site.indices.to_numpy().astype(np.int64) * width + day - first_day
    found = np.unique(key)
    for one in found.tolist():
        rows = table if len(found) == 1 else table.filter(pa.array(key == one))
        folders = [folder_name("site", site.dictionary[one // width].as_py())]
        if day_column:
            date = np.datetime64(one % width + first_day, "D")
            folders.append(folder_name("day", str(date)))
        yield folders, rows


def repeating(schema):
    """Columns for which Parquet's dictionaries pay.

    For the others, building them costs more time than all the rest of writing.
    """
    return [field.name for field in schema if _repeats(field)]


def _repeats(field):
    kind = field.type
    is_narrow = pa.types.is_integer(kind) and kind.bit_width < 64
    return pa.types.is_dictionary(kind) or is_narrow or field.name.endswith("_bytes")


def _write(rows, path):
    rows = rows.drop_columns(["site"])  # it is in the folder's name
    with places.made_here(path) as local:
        pq.write_table(
            rows,
            local,
            use_dictionary=repeating(rows.schema),
            compression="zstd",
            compression_level=1,
            store_schema=False,  # with it, readers would make categories of what is text
        )
