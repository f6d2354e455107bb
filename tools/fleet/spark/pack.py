"""Arrow tables as single values, so that a shuffle moves few large rows.

Between two steps Spark moves pairs of a bucket and a `Row`: thousands of packets cost one in
the JVM.  Buckets are chosen so that what belongs together (a connection, a client, a topic,
a device) meets in one task.
"""

import json
import zlib
from dataclasses import fields
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..capture.frames import padded
from ..capture.link import Segments
from ..columns import whole
from ..decode.connections import key_hash
from ..decode.fields import slices

# The JVM copies each part several times, so making them smaller pays at once.
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
_FEW_NAMES = 256
_SET_BACK = b"set_back"
_NAMES = [one.name for one in fields(Segments) if one.name not in ("data", "start", "set_back")]


class Row(NamedTuple):
    """`part` are the rows of a table, `kind` says what they hold: `segments`, `events`, …, or
    the table's name.

    Where all are of one file: its `site` and `capture`, when it begins (`first_ts`), and the
    byte where the first row's frame lies (`begin`).
    """

    kind: str
    part: bytes
    site: str | None = None
    capture: str | None = None
    first_ts: int | None = None
    begin: int | None = None


def dump(table):
    """The bytes of a table or record batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
        writer.write(table)
    return sink.getvalue().to_pybytes()


def load(part):
    """The table that these are the bytes of."""
    return pa.ipc.open_stream(part).read_all()


def rows(entries, **origin):
    """Yield (bucket, `Row`) for entries of (kind, bucket, table).

    `origin`: what is known of where they are from.  One table for several buckets in a row
    is packed once.
    """
    last, part = None, b""
    for kind, bucket, table in entries:
        part = part if table is last else dump(table)
        last = table
        yield bucket, Row(kind, part, **origin)


def of_kind(pairs, kind):
    """The tables of this kind."""
    return [load(row.part) for _, row in pairs if row.kind == kind]


def named(pairs, kind):
    """One table of all parts of this kind; None when there is none."""
    found = of_kind(pairs, kind)
    return pa.concat_tables(found).unify_dictionaries().combine_chunks() if found else None


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
                fresh = column.cast(field.type.value_type).dictionary_encode()
                table = table.set_column(place, field, fresh)
    return table


def text_buckets(values, count):
    """A bucket below `count` for each string of an array, the same everywhere and always; null
    and no text at all are in the first."""
    if count == 1:
        return np.zeros(len(values), np.int64)
    texts = values.cast(pa.binary()).fill_null(b"").to_numpy(zero_copy_only=False)
    sums = np.fromiter(map(zlib.crc32, texts.tolist()), np.uint64, len(texts))
    # crc32 alone is linear: similar names would share their low bits.
    mixed = sums * np.uint64(0x9E3779B97F4A7C15)
    return ((mixed >> np.uint64(33)) % np.uint64(count)).astype(np.int64)


def bucketed(segments, site_bucket, count):
    """(bucket, `Segments`) for the connections of these segments."""
    bucket = (key_hash(segments) >> np.uint64(11)) % np.uint64(count)
    bucket = (bucket.astype(np.int64) + site_bucket) % count
    order = np.argsort(bucket, kind="stable")
    for some in np.split(order, np.flatnonzero(np.diff(bucket[order])) + 1):
        if len(some):
            yield int(bucket[some[0]]), segments.take(some)


def segment_table(segments):
    """An Arrow table of them, payloads included."""
    columns = {name: pa.array(getattr(segments, name)) for name in _NAMES}
    columns["payload"] = slices(segments.data, segments.start, segments.held)
    told = {_SET_BACK: json.dumps(segments.set_back)} if segments.set_back else None
    return pa.table(columns, metadata=told)


def segments(tables):
    """`Segments` again, of one or more tables, with a buffer of their own."""
    told = [json.loads((one.schema.metadata or {}).get(_SET_BACK, "[]")) for one in tables]
    places = tuple(dict.fromkeys(tuple(place) for one in told for place in one))
    table = pa.concat_tables([one.replace_schema_metadata() for one in tables]).combine_chunks()
    _, offsets, data = table["payload"].chunk(0).buffers()
    start = np.frombuffer(offsets, np.int64)[: len(table)]
    columns = {name: table[name].to_numpy() for name in _NAMES}
    return Segments(padded(data or b""), start=start, **columns, set_back=places)
