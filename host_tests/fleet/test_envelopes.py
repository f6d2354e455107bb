"""Readings unpacked from columns of bytes, however Arrow has laid the column out."""

import struct

import numpy as np
import pyarrow as pa
import pytest

from host_tests.fleet.simulate.fleet import reading
from tools.fleet.audit import envelopes
from tools.fleet.capture import payloads

ONE = reading(0x0102, 3, 7, 60, 2, b"esp32-1", (2100, 3300))
NO_VALUES = reading(0x0102, 4, 1, 5, 0, "gr\u00fcn".encode(), (0, 0))[:41]
OTHER = NO_VALUES[:17] + b"\0" + NO_VALUES[18:]
LATER = bytes([ONE[0], 2]) + ONE[2:] + (1_700_000_000).to_bytes(4, "big")
TIMELESS = bytes([OTHER[0], 2]) + OTHER[2:] + bytes(4)
COLUMN = pa.array([None, ONE, None, OTHER, ONE], pa.binary())
EXPECTED = [None, ("esp32-1", 3, 2, 7), None, ("gr\u00fcn", 4, 0, 1), ("esp32-1", 3, 2, 7)]


def _of(count):
    # A reading of version 2 with so many values.
    values = b"".join(struct.pack(">Bi", 1, number) for number in range(count))
    return LATER[:17] + bytes([count]) + LATER[18:41] + values + LATER[-4:]


def _decoded(column):
    found = envelopes.decode(column)
    rows = zip(
        *(found[n].to_pylist() for n in ("device", "boot", "stream", "sequence")), strict=True
    )
    return [None if row[0] is None else row for row in rows]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (COLUMN, EXPECTED),
        (COLUMN.slice(2, 2), EXPECTED[2:4]),
        (pa.chunked_array([COLUMN, COLUMN.slice(3)]), EXPECTED + EXPECTED[3:]),
        (pa.chunked_array([], pa.binary()), []),
        (pa.array([None, None], pa.binary()), [None, None]),
    ],
    ids=["whole", "sliced", "in chunks", "empty", "none"],
)
def test_decode_gives_each_row_its_own_reading(column, expected):
    assert _decoded(column) == expected


def test_unpack_of_some_gives_values_with_their_entry():
    fields = envelopes.unpack(COLUMN, np.array([4, 3]))
    assert fields["count"].tolist() == [2, 0]
    assert fields[0]["values"]["value"][:2].tolist() == [2100, 3300]


def test_measured_is_the_time_behind_the_values_of_version_2():
    fields = envelopes.unpack(pa.array([ONE, LATER, TIMELESS, None, LATER], pa.binary()))
    microseconds = 1_700_000_000_000_000
    assert envelopes.measured(fields).to_pylist() == [None, microseconds, None, None, microseconds]
    assert fields["sequence"].tolist() == [7, 7, 1, 0, 7]


def test_values_of_the_longest_reading_are_all_there():
    fields = envelopes.unpack(pa.array([_of(9)], pa.binary()))
    assert fields[0]["values"]["value"].tolist() == list(range(9))
    assert envelopes.measured(fields).to_pylist() == [1_700_000_000_000_000]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (ONE, True),
        (LATER, True),
        (TIMELESS, True),
        (ONE[:-1], False),
        (LATER[:-4], False),
        (LATER[:-1], False),
        (ONE + bytes(4), False),
        (ONE[:1] + b"\3" + ONE[2:] + bytes(8), False),
        (ONE[:1] + b"\0" + ONE[2:-4], False),
        (_of(9), True),
        (_of(10), False),
    ],
)
def test_is_reading_knows_both_versions_by_their_length(payload, expected):
    data = np.frombuffer(payload, np.uint8)
    start, size = np.array([0]), np.array([len(payload)])
    assert payloads.is_reading(data, start, size).tolist() == [expected]
