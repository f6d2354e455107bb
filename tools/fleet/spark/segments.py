"""TCP segments on their way through a shuffle: packed with their payloads, by connection."""

import json

import numpy as np
import pyarrow as pa

from ..capture.frames import padded
from ..capture.link import Segments
from ..columns import factorized
from ..decode.connections import key_hash
from ..decode.fields import slices

# What all segments of a connection share; on its way once for each connection.
_ENDS = ("client_high", "client_low", "server_high", "server_low", "ports")
_SET_BACK = b"set_back"
_NUMBERS = {
    "to_server": pa.bool_(),
    "seq": pa.uint32(),
    "ack": pa.uint32(),
    "flags": pa.uint8(),
    "size": pa.uint32(),
    "held": pa.uint32(),
    "offset": pa.int64(),
    "ts": pa.int64(),
}


def bucketed(segments, site_bucket, count):
    """(bucket, `Segments`) for the connections of these segments."""
    bucket = (key_hash(segments) >> np.uint64(11)) % np.uint64(count)
    bucket = (bucket.astype(np.int64) + site_bucket) % count
    order = np.argsort(bucket, kind="stable")
    chosen = bucket[order]
    first = np.flatnonzero(np.diff(chosen, prepend=-1))
    for begin, end in zip(first, np.append(first[1:], len(chosen)), strict=True):
        yield int(chosen[begin]), segments.take(order[begin:end])


def to_table(segments):
    """An Arrow table of them, payloads included."""
    codes, _ = factorized(key_hash(segments))
    first = np.full(codes.max(initial=-1) + 1, 0)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    ends = pa.StructArray.from_arrays(
        [pa.array(getattr(segments, name)[first]) for name in _ENDS], names=_ENDS
    )
    columns = {"ends": pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), ends)}
    for name, kind in _NUMBERS.items():
        columns[name] = pa.array(getattr(segments, name)).cast(kind)
    columns["payload"] = slices(segments.data, segments.start, segments.held)
    told = {_SET_BACK: json.dumps(segments.set_back)} if segments.set_back else None
    return pa.table(columns, metadata=told)


def from_tables(tables):
    """`Segments` again, of one or more tables, with a buffer of their own."""
    columns = {name: np.concatenate(found) for name, found in _ends(tables).items()}
    table = pa.concat_tables(
        [one.drop_columns(["ends"]).replace_schema_metadata() for one in tables]
    ).combine_chunks()
    payload = table["payload"].chunk(0)
    offsets = np.frombuffer(payload.buffers()[1], np.int64)[payload.offset :]
    offsets = offsets[: len(payload) + 1]
    data = payload.buffers()[2]
    data = memoryview(data)[: offsets[-1]] if data else b""
    for name in _NUMBERS:
        values = table[name].to_numpy()
        columns[name] = values.astype(np.int64) if values.dtype == np.uint32 else values
    columns["to_server"] = columns["to_server"].astype(bool)
    told = [json.loads((one.schema.metadata or {}).get(_SET_BACK, "[]")) for one in tables]
    places = tuple(dict.fromkeys(tuple(place) for one in told for place in one))
    return Segments(data=padded(data), start=offsets[:-1], **columns, set_back=places)


def _ends(tables):
    # {name: an array for each table}
    found = {name: [] for name in _ENDS}
    for table in tables:
        ends = table["ends"].combine_chunks()
        codes = ends.indices.to_numpy()
        for name in _ENDS:
            found[name].append(ends.dictionary.field(name).to_numpy()[codes])
    return found
