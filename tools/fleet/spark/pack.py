"""Arrow tables as single values, so that a shuffle moves few large rows.

Between two Python stages a row of Spark is one of `schemas.FRAMES`, behind the judging one
of `schemas.PARTS`: thousands of packets cost one row in the JVM, and each column it has
costs every task.  Buckets are chosen so that what belongs together (a connection, a client,
a topic, a device) meets in one partition.

A part is an Arrow stream.  Where all tasks see the same folder (one computer), a task
writes its tables into a file there instead, the *shelf*, and its parts say only where in
it they are: the JVM would copy the bytes several times, the reader maps them.
"""

import ctypes
import mmap
import os
import sys
import uuid
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa

from .. import schemas
from ..columns import whole

_SQL_TYPES = {
    pa.string(): "string",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.binary(): "binary",
    schemas.TS: "timestamp",
}
# The columns as Spark's SQL writes them.
PACKED = ", ".join("%s %s" % (one.name, _SQL_TYPES[one.type]) for one in schemas.FRAMES)
# What a part was read from: the columns of `schemas.FRAMES` that say so.
ORIGIN = ("site", "capture", "first_ts", "begin")
# The JVM copies each part several times, so making them smaller pays at once.
_PACKED_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_FEW_NAMES = 256
_ON_SHELF = b"@"
_HOLE = 3  # of fallocate(2): FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE
_fallocate = None
if sys.platform == "linux":
    _fallocate = getattr(ctypes.CDLL(None), "fallocate64", None)


def dump(table):
    """The bytes of a table or record batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_PACKED_OPTIONS) as writer:
        writer.write(table)
    return sink.getvalue().to_pybytes()


def load(parts):
    """One table of several parts, in their order."""
    return joined([pa.ipc.open_stream(_bytes(part)).read_all() for part in parts])


def joined(tables):
    """One table of several."""
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _bytes(part):
    if not _is_on_shelf(part):
        return part
    begin, size, path = _place(part)
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.py_buffer(data).slice(begin, size)


def _is_on_shelf(part):
    # An Arrow stream never begins like this.
    return bytes(part[:1]) == _ON_SHELF


def _place(part):
    begin, size, path = bytes(part).split(b" ", 3)[1:]
    return int(begin), int(size), path


def forget(parts):
    """Give back the memory and the blocks of parts on the shelf that nobody reads again.

    What is written next gets these pages: new ones cost several times as much as the copy.
    """
    if _fallocate is None:
        return
    for part in parts:
        if _is_on_shelf(part):
            begin, size, path = _place(part)
            file = os.open(path, os.O_WRONLY)
            # A file system without holes keeps it until the whole shelf is deleted.
            _fallocate(file, _HOLE, ctypes.c_int64(begin), ctypes.c_int64(size))
            os.close(file)


class _Shelf:
    # One file of packed tables; made when the first one comes.
    def __init__(self, folder):
        self._path = Path(folder) / uuid.uuid4().hex
        self._file = None

    def put(self, table):
        self._file = self._file or pa.OSFile(str(self._path), "wb")
        begin = self._file.tell()
        with pa.ipc.new_stream(self._file, table.schema) as writer:
            writer.write(table)
        size = self._file.tell() - begin
        return b"%s %d %d %s" % (_ON_SHELF, begin, size, str(self._path).encode())

    def close(self):
        if self._file:
            self._file.close()


def rows(entries, shelf=None, **origin):
    """A record batch of `schemas.FRAMES` for `entries`, as of `parts`.

    `origin`: those of `ORIGIN` that are known, the same for all.
    """
    batch = parts(entries, shelf)
    columns = {name: batch[name] for name in batch.schema.names}
    for name in ORIGIN:
        kind = schemas.FRAMES.field(name).type
        columns[name] = pa.array([origin.get(name)] * batch.num_rows, kind)
    return _batch(columns, schemas.FRAMES)


def parts(entries, shelf=None):
    """A record batch of `schemas.PARTS` for entries of (kind, bucket, table).

    `shelf` is a folder that all tasks see, or None.  One table for several buckets in a row
    is packed once.
    """
    kinds, buckets, packed, last = [], [], [], None
    file = _Shelf(shelf) if shelf else None
    for kind, bucket, table in entries:
        kinds.append(kind)
        buckets.append(bucket)
        if table is not last:
            part = file.put(table) if file else dump(table)
        packed.append(part)
        last = table
    if file:
        file.close()
    # A bytes column of Arrow ends at 2 GB, and so does a row of Spark.
    columns = {"kind": kinds, "bucket": buckets, "part": packed}
    arrays = {one.name: pa.array(columns[one.name], one.type) for one in schemas.PARTS}
    return _batch(arrays, schemas.PARTS)


def _batch(arrays, schema):
    # Without metadata: Spark compares schemas.
    arrays = [arrays[name] for name in schema.names]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.remove_metadata())


def split(table, buckets):
    """(bucket, its rows) for an array that gives each row its bucket; -1: left out."""
    small = np.min_scalar_type(-1 - buckets.max(initial=0))  # which are sorted by their digits
    order = np.argsort(buckets.astype(small), kind="stable")
    chosen = buckets[order]
    first = np.flatnonzero(np.diff(chosen, prepend=-1))
    table = table.take(pa.array(order)) if np.any(chosen[1:] != chosen[:-1]) else table
    bounds = np.append(first, len(chosen))
    for begin, end in zip(bounds[:-1], bounds[1:], strict=True):
        yield int(chosen[begin]), _compact(table.slice(begin, end - begin))


def _compact(table):
    # A slice keeps the dictionaries of the whole: of many clients it would carry all names.
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type) and table.num_rows:
            column = whole(table.column(place))
            if len(column.dictionary) > max(_FEW_NAMES, table.num_rows // 4):
                table = table.set_column(place, field, _used(column))
    return table


def _used(column):
    codes, names = column.indices.fill_null(-1).to_numpy(), column.dictionary
    is_used = np.zeros(len(names) + 1, bool)  # the last one is for null
    is_used[codes] = True
    used = np.flatnonzero(is_used[:-1])
    fresh = np.zeros(len(is_used), np.int32)
    fresh[used] = np.arange(len(used))
    fresh = pa.array(fresh[codes], mask=codes < 0 if is_used[-1] else None)
    return pa.DictionaryArray.from_arrays(fresh, names.take(pa.array(used)))


def text_buckets(values, count):
    """A bucket below `count` for each string of an array, the same everywhere and always; null
    and no text at all are in the first."""
    texts = values.cast(pa.binary()).fill_null(b"").to_numpy(zero_copy_only=False)
    sums = np.fromiter(map(zlib.crc32, texts.tolist()), np.uint64, len(texts))
    # crc32 alone is linear: similar names would share their low bits.
    mixed = sums * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(33)) % np.uint64(count)).astype(np.int64)


def plain(table, schema):
    """The table with exactly the types of `schema`, no dictionaries."""
    return table.select(schema.names).cast(schema)
