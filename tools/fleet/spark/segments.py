"""TCP segments on their way through a shuffle: packed with their payloads, by connection."""

import json
from dataclasses import fields

import numpy as np
import pyarrow as pa

from ..capture.frames import padded
from ..capture.link import Segments
from ..decode.connections import key_hash
from ..decode.fields import slices

_SET_BACK = b"set_back"
_NAMES = [one.name for one in fields(Segments) if one.name not in ("data", "start", "set_back")]


def bucketed(segments, site_bucket, count):
    """(bucket, `Segments`) for the connections of these segments."""
    bucket = (key_hash(segments) >> np.uint64(11)) % np.uint64(count)
    bucket = (bucket.astype(np.int64) + site_bucket) % count
    order = np.argsort(bucket, kind="stable")
    for some in np.split(order, np.flatnonzero(np.diff(bucket[order])) + 1):
        if len(some):
            yield int(bucket[some[0]]), segments.take(some)


def to_table(segments):
    """An Arrow table of them, payloads included."""
    columns = {name: pa.array(getattr(segments, name)) for name in _NAMES}
    columns["payload"] = slices(segments.data, segments.start, segments.held)
    told = {_SET_BACK: json.dumps(segments.set_back)} if segments.set_back else None
    return pa.table(columns, metadata=told)


def from_tables(tables):
    """`Segments` again, of one or more tables, with a buffer of their own."""
    told = [json.loads((one.schema.metadata or {}).get(_SET_BACK, "[]")) for one in tables]
    places = tuple(dict.fromkeys(tuple(place) for one in told for place in one))
    table = pa.concat_tables([one.replace_schema_metadata() for one in tables]).combine_chunks()
    _, offsets, data = table["payload"].chunk(0).buffers()
    start = np.frombuffer(offsets, np.int64)[: len(table)]
    columns = {name: table[name].to_numpy() for name in _NAMES}
    return Segments(padded(data or b""), start=start, **columns, set_back=places)
