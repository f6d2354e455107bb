"""TCP segments on their way through a shuffle: packed with their payloads, by connection."""

import numpy as np
import pyarrow as pa

from ..capture.frames import padded
from ..capture.link import Segments
from ..decode.connections import key_hash
from ..decode.fields import slices

_NUMBERS = [name for name in Segments.__dataclass_fields__ if name not in ("data", "start")]


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
    columns = {name: getattr(segments, name) for name in _NUMBERS}
    columns["payload"] = slices(segments.data, segments.start, segments.held)
    return pa.table(columns)


def from_table(table):
    """`Segments` again, with a buffer of their own."""
    table = table.combine_chunks()
    payload = table["payload"].chunk(0)
    offsets = np.frombuffer(payload.buffers()[1], np.int64)[payload.offset :]
    offsets = offsets[: len(payload) + 1]
    data = payload.buffers()[2]
    data = memoryview(data)[: offsets[-1]] if data else b""
    columns = {
        name: table[name].to_numpy() if name != "to_server" else _bools(table[name])
        for name in _NUMBERS
    }
    return Segments(data=padded(data), start=offsets[:-1], **columns)


def _bools(column):
    return column.to_numpy().astype(bool)
