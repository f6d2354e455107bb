"""Readings as devices send them (docs/reference/readings.md): bytes -> columns."""

import numpy as np
import pyarrow as pa

from ..capture.payloads import MOST_VALUES
from ..columns import whole

BINARY = 0x75  # magic byte of our own envelopes; of JSON: `payloads.MAGIC`
_FIELDS = "magic version firmware boot sequence uptime_s stream count device".split()
_HEADER = np.dtype(list(zip(_FIELDS, "u1 u1 >u2 >u4 >u4 >u4 u1 u1 S23".split(), strict=True)))
_NUMBERS = ("boot", "stream", "sequence")  # that tell one of a device from the others
_VALUES = ("values", [("kind", "u1"), ("value", ">i4")], MOST_VALUES)
# The time is here when all values are used; see measured().
_LAYOUT = np.dtype([*_HEADER.descr, _VALUES, ("time", ">u4")])


def headers(envelopes):
    """`unpack` without values and time, for all envelopes: fewer bytes to move."""
    return unpack(envelopes, slice(None), _HEADER)


def unpack(envelopes, index=slice(None), layout=_LAYOUT):
    """-> array of the layout in docs/reference/readings.md, all zeros where there is no envelope.

    Of `values` only the first `count` mean anything.  `index`: of these envelopes only.
    """
    column = whole(envelopes)
    offsets = np.frombuffer(column.buffers()[1] or bytes(4), np.int32)[column.offset :]
    begin, end = offsets[: len(column)][index], offsets[1 : len(column) + 1][index]
    data = column.buffers()[2] or pa.py_buffer(b"")
    # One array has an overlapping entry for each place where an envelope may begin, as numpy
    # copies bytes faster than fields.  A short envelope is followed by bytes of the next one,
    # but its count says that it has no values there.
    kind = np.dtype("V%d" % layout.itemsize)
    last = max(0, data.size - layout.itemsize)
    behind = data[last:].to_pybytes() + bytes(layout.itemsize)
    found = np.ndarray(last + 1, kind, data if last else behind, strides=(1,))
    found = found[np.minimum(begin, last)]
    late = np.flatnonzero(begin > last)
    for one in late[begin[late] < end[late]].tolist():
        found[one] = behind[begin[one] - last :][: layout.itemsize]
    found[begin == end] = bytes(layout.itemsize)
    return found.view(layout)


def measured(fields):
    """When each entry of `unpack` was measured, µs since 1970; null where it is not known."""
    count = np.minimum(fields["count"], MOST_VALUES).astype(np.int64)
    raw = np.ascontiguousarray(fields).view(np.uint8).reshape(len(fields), _LAYOUT.itemsize)
    # The time is behind the last value.
    places = (_HEADER.itemsize + 5 * count)[:, None] + np.arange(4)
    seconds = np.take_along_axis(raw, places, axis=1).view(">u4")[:, 0].astype(np.int64)
    is_known = (fields["version"] == 2) & (seconds > 0)
    return pa.array(seconds * 1_000_000, mask=~is_known)


def decode(envelopes):
    """-> {name: Arrow array} of device, boot, stream, sequence; null where no envelope is.

    `device` is a dictionary, and there for JSON, too.
    """
    fields = headers(envelopes)
    names = devices(fields)
    codes = pa.array(names.indices.to_numpy(), mask=fields["magic"] == 0)
    # In JSON it is not known yet whether the counter counts.
    mask = fields["magic"] != BINARY
    return {
        "device": pa.DictionaryArray.from_arrays(codes, names.dictionary),
        **{name: pa.array(fields[name].astype(np.int64), mask=mask) for name in _NUMBERS},
    }


def devices(fields):
    """The device of each entry of `unpack` or `headers`, as a dictionary array."""
    raw = np.ascontiguousarray(fields["device"])
    kind = pa.binary(raw.dtype.itemsize)
    coded = pa.Array.from_buffers(kind, len(raw), [None, pa.py_buffer(raw)]).dictionary_encode()
    raw = np.frombuffer(coded.dictionary.buffers()[1], raw.dtype)[: len(coded.dictionary)]
    try:
        names = pa.array(raw.tolist(), pa.binary()).cast(pa.string())  # without zeros at the end
    except pa.ArrowInvalid:
        names = pa.array([one.decode("utf-8", "backslashreplace") for one in raw.tolist()])
    return pa.DictionaryArray.from_arrays(coded.indices, names)
