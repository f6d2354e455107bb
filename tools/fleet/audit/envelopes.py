"""Readings as devices send them (docs/reference/readings.md): bytes -> columns."""

import numpy as np
import pyarrow as pa

_LAYOUT = np.dtype(
    [
        ("magic", "u1"),
        ("version", "u1"),
        ("firmware", ">u2"),
        ("boot", ">u4"),
        ("sequence", ">u4"),
        ("uptime_s", ">u4"),
        ("stream", "u1"),
        ("count", "u1"),
        ("device", "S23"),
        ("values", [("kind", "u1"), ("value", ">i4")], 8),
        ("time", ">u4"),  # here when all values are used; see measured()
    ]
)
_HEADER_BYTES = 41
_BYTES = np.dtype("V%d" % _LAYOUT.itemsize)  # numpy copies these faster than fields


def unpack(envelopes):
    """-> array of the layout in docs/reference/readings.md, all zeros where there is no envelope.

    Of `values` only the first `count` mean anything.
    """
    chunks = envelopes.chunks if isinstance(envelopes, pa.ChunkedArray) else [envelopes]
    found = np.concatenate([np.zeros(0, _BYTES), *map(_entries, chunks)])
    return found.view(_LAYOUT)


def _entries(column):
    if not len(column):
        return np.zeros(0, _BYTES)
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :][: len(column) + 1]
    data = (column.buffers()[2] or pa.py_buffer(b"")).to_pybytes() + bytes(_BYTES.itemsize)
    # All places where one may begin, as overlapping entries of one array.  Behind a
    # short one come the bytes of the next, where its count says that no values are.
    places = np.ndarray(len(data) - _BYTES.itemsize + 1, _BYTES, data, strides=(1,))
    found = places[offsets[:-1]]
    found[np.diff(offsets) == 0] = bytes(_BYTES.itemsize)
    return found


def measured(fields):
    """When each entry of `unpack` was measured, µs since 1970; null where it is not known."""
    count = np.minimum(fields["count"], 8).astype(np.int64)
    raw = np.ascontiguousarray(fields).view(np.uint8).reshape(len(fields), _LAYOUT.itemsize)
    # Behind the last value.
    places = (_HEADER_BYTES + 5 * count)[:, None] + np.arange(4)
    seconds = np.take_along_axis(raw, places, axis=1).view(">u4")[:, 0].astype(np.int64)
    is_known = (fields["version"] == 2) & (seconds > 0)
    return pa.array(seconds * 1_000_000, mask=~is_known)


def pick(fields, index):
    """Some entries of `unpack`."""
    return fields.view(_BYTES)[index].view(_LAYOUT)


def decode(envelopes):
    """-> {name: Arrow array} of device, boot, stream, sequence; null where no envelope is.

    `device` is a dictionary.
    """
    fields = unpack(envelopes)
    mask = fields["magic"] == 0
    names = devices(fields)
    codes = pa.array(names.indices.to_numpy(), mask=mask)
    return {
        "device": pa.DictionaryArray.from_arrays(codes, names.dictionary),
        "boot": pa.array(fields["boot"].astype(np.int64), mask=mask),
        "stream": pa.array(fields["stream"].astype(np.int16), mask=mask),
        "sequence": pa.array(fields["sequence"].astype(np.int64), mask=mask),
    }


def devices(fields):
    """The device of each entry of `unpack`, as a dictionary array."""
    raw = np.ascontiguousarray(fields["device"])
    kind = pa.binary(raw.dtype.itemsize)
    coded = pa.Array.from_buffers(kind, len(raw), [None, pa.py_buffer(raw)]).dictionary_encode()
    raw = np.frombuffer(coded.dictionary.buffers()[1], raw.dtype)[: len(coded.dictionary)]
    try:
        names = pa.array(raw.tolist(), pa.binary()).cast(pa.string())  # no zeros behind them
    except pa.ArrowInvalid:
        names = pa.array([one.decode("utf-8", "backslashreplace") for one in raw.tolist()])
    return pa.DictionaryArray.from_arrays(coded.indices, names)
