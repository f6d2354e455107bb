"""Numbers of readings that are missing: published elsewhere, or by nobody; and readings unpacked
from columns of bytes, however Arrow has laid the column out.
"""

import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from host_tests.fleet.captures import C2S, S2C, SERVER, Capture, connected, decode, rows
from host_tests.fleet.simulate.fleet import reading
from tools.fleet.audit import envelopes
from tools.fleet.audit.judge import judge
from tools.fleet.audit.readings import readings
from tools.fleet.capture import payloads


def _reading(number, boot=1):
    return reading(257, boot, number, number & 0xFFFF, 1, b"dev", (2100, 3300))


def _publish(talk, *numbers, boot=1):
    for number in numbers:
        talk.exchange(C2S, b"site/dev", _reading(number, boot), number)


def _losses(capture, *columns):
    return rows(capture.audit()["losses"], *columns)


def _lost(tmp_path, **stays):
    """What is missing when a device was at the sites `stays`: lists of lists of numbers, each
    of a connection of its own -> [(site, first, last, sure), …]"""
    messages = []
    for site, connections in stays.items():
        capture = Capture()
        for numbers in connections:
            talk = capture.connection(b"dev", server=SERVER)
            _publish(talk, *numbers)
            talk.reset()
        path = capture.write(tmp_path / (site + ".pcap"))
        messages.append(judge(decode(path, site=site)[0])["messages"])
    both = pa.concat_tables(messages).unify_dictionaries().combine_chunks()
    found = readings(both.filter(pc.is_valid(both["envelope"])))["losses"]
    columns = ("site", "first_sequence", "last_sequence", "messages", "sure")
    result = rows(found, *columns)
    assert all(last - first + 1 == count for _, first, last, count, _ in result)
    return [(*row[:3], row[4]) for row in result]


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ([4, 5, 6, 7], []),
        ([5, 6, 7], [(4, 4)]),
        ([4, 6, 7], [(5, 5)]),
        ([4, 7], [(5, 6)]),
        ([5], [(4, 4), (6, 7)]),
        ([1, 2, 9], [(4, 7)]),
    ],
)
def test_readings_that_another_site_has_are_not_missing_here(there, missing, tmp_path):
    """The device was moved, and is back."""
    found = _lost(tmp_path, north=[[1, 2, 3], [8, 9]], south=[there])
    assert [row[1:3] for row in found if row[0] == "north"] == missing


@pytest.mark.parametrize(
    ("connections", "sure"), [([[1, 2, 5, 6]], "proved"), ([[1, 2], [5, 6]], "likely")]
)
def test_between_two_connections_a_device_may_have_been_elsewhere(connections, sure, tmp_path):
    assert _lost(tmp_path, north=connections) == [("north", 3, 4, sure)]


def test_first_readings_of_a_boot_may_have_gone_elsewhere():
    """The one before them is of another connection."""
    capture = Capture()
    for boot, numbers in ((1, (1, 2)), (2, (3, 4))):
        talk = capture.connection(b"dev", server=SERVER)
        _publish(talk, *numbers, boot=boot)
        talk.reset()
    found = _losses(capture, "boot", "first_sequence", "last_sequence", "sure")
    assert found == [(2, 1, 2, "likely")]


def test_readings_in_missing_bytes_of_the_only_one_who_saw_those_around_are_not_missing():
    """The device was captured with the later ones alone."""
    capture, subscriber, device = connected(b"sub", b"dev")
    for number in (1, 2, 3):
        for talk, side, seen in ((device, C2S, (3,)), (subscriber, S2C, (1, 3))):
            if number in seen:
                talk.publish(side, b"site/dev", _reading(number), 1, number)
            else:
                talk.wire.seq[side] += 80
    assert not _losses(capture)


@pytest.mark.parametrize("others", [0, 1, 3])
def test_readings_in_missing_bytes_are_not_missing_whatever_came_between(others):
    """Messages on other topics, and other streams, behind the gap and before the next one."""
    capture, talk = connected(b"dev", server=SERVER)
    _publish(talk, 1, 2)
    talk.wire.seq[C2S] += 100  # the third
    for number in range(others):
        talk.publish(C2S, b"site/dev/health", b"%d" % number)
    _publish(talk, 4, 5, 7)
    found = _losses(capture, "first_sequence", "last_sequence", "sure")
    assert found == [(6, 6, "proved")]


def test_boot_counters_and_numbers_of_32_bits_are_told_as_they_are():
    last = (1 << 32) - 1
    capture, talk = connected(b"dev", server=SERVER)
    sent = [(1, last), (last, last - 3), (last, last)]
    for packet_id, (boot, number) in enumerate(sent, 1):
        talk.exchange(C2S, b"site/dev", _reading(number, boot), packet_id)
    found = capture.audit()
    assert rows(found["readings"], "boot", "sequence") == sent
    gaps = rows(found["losses"], "boot", "first_sequence", "last_sequence")
    assert gaps == [(last, 1, last - 4), (last, last - 2, last - 1)]


@pytest.mark.parametrize(("qos", "packet_id"), [(1, 0), (2, 0), (3, 9)])
def test_reading_in_a_publish_that_nobody_can_answer_was_sent(qos, packet_id):
    """It breaks a statement of its own, and left the device all the same."""
    capture, talk = connected(b"dev", server=SERVER)
    _publish(talk, 1)
    talk.publish(C2S, b"site/dev", _reading(2), qos, packet_id)
    _publish(talk, 3)
    found = capture.audit()
    assert found["violations"].num_rows == 1
    assert found["messages"]["state"].null_count == 1
    assert not found["losses"].num_rows
    assert rows(found["readings"], "sequence", "qos") == [(1, 1), (2, qos), (3, 1)]


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
    found = rows(envelopes.decode(column), "device", "boot", "stream", "sequence")
    return [None if row[0] is None else row for row in found]


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


_OTHERS = [ONE[:-1], LATER[:-4], LATER[:-1], ONE + bytes(4), _of(10)]
_OTHERS += [ONE[:1] + b"\3" + ONE[2:] + bytes(8), ONE[:1] + b"\0" + ONE[2:-4]]  # versions


@pytest.mark.parametrize("payload", [ONE, LATER, TIMELESS, _of(9), *_OTHERS])
def test_is_reading_knows_both_versions_by_their_length(payload):
    data = np.frombuffer(payload, np.uint8)
    start, size = np.array([0]), np.array([len(payload)])
    assert payloads.is_reading(data, start, size).tolist() == [payload not in _OTHERS]
