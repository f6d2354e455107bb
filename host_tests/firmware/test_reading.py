"""The envelope of docs/reference/readings.md, against a reader that shares no code with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_tests.firmware.decoding import decode
from reading import HUMIDITY, TEMPERATURE, Reading


def test_reading_with_two_values_has_the_documented_bytes():
    reading = Reading("node-7", 0x0102, 5)
    reading.clear()
    reading.add(TEMPERATURE, 2150)
    reading.add(HUMIDITY, -1)
    envelope = bytes(reading.number(3, 1000, 86400, 0x6553, 0xF100))
    assert envelope.hex() == (
        "75020102" + "00000005" + "000003e8" + "00015180" + "0302"
        + "6e6f64652d37" + "00" * 17
        + "0100000866" + "02ffffffff" + "6553f100"
    )  # fmt: skip


def test_reading_when_full_leaves_out_further_values_until_it_is_cleared():
    reading = Reading("n", 0x0100, 1)
    for _ in range(2):
        reading.clear()
        assert decode(bytes(reading.number(0, 1, 0)))["values"] == []
        assert [reading.add(128 + i, i) for i in range(10)] == [True] * 9 + [False]
        assert decode(bytes(reading.number(0, 1, 0)))["values"] == [(128 + i, i) for i in range(9)]


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 1 << 70])
def test_reading_refuses_a_value_of_more_than_32_bits(value):
    """MicroPython would cut it without a word."""
    reading = Reading("n", 0x0100, 1)
    with pytest.raises(ValueError, match="has more than 32 bits"):
        reading.add(1, value)
    with pytest.raises(TypeError):
        reading.add(1, 21.5)
    assert decode(bytes(reading.number(0, 1, 0)))["values"] == []


@given(
    device=st.text(min_size=1, max_size=23).filter(
        lambda text: len(text.encode()) <= 23 and "\0" not in text
    ),
    boot=st.integers(0, 2**32 - 1),
    sequence=st.integers(0, 2**32 - 1),
    stream=st.integers(0, 255),
    values=st.lists(st.tuples(st.integers(0, 255), st.integers(-(2**31), 2**31 - 1)), max_size=8),
)
def test_reading_of_anything_allowed_reads_back(device, boot, sequence, stream, values):
    reading = Reading(device, 0x0100, boot)
    reading.clear()
    for kind, value in values:
        reading.add(kind, value)
    found = decode(bytes(reading.number(stream, sequence, 9)))
    assert found == {
        "magic": 0x75, "version": 2, "firmware": 0x0100, "boot": boot, "sequence": sequence,
        "time": 0,
        "uptime_s": 9, "stream": stream, "device": device, "values": values,
    }  # fmt: skip
