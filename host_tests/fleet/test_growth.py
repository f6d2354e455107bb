"""Files that are still written to: read up to whole records and lines, never behind."""

import gzip
import json

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from host_tests.fleet.captures import simulated
from tools.fleet.capture import files, growth, jsonl
from tools.fleet.capture.frames import Tally
from tools.fleet.simulate.run import Plan
from tools.fleet.spark import growing, pack, source

_NEVER, _NOW = float("inf"), 0
_ALL = 1 << 40


@pytest.fixture(scope="module")
def capture():
    return simulated(Plan(devices=2, readings=10, seed=3))[0]


def _source(folder, name, data):
    path = folder / name
    path.write_bytes(data)
    return files.Source(str(path), name, "default")


def _records(data):
    pos, ends = 24, [24]
    while pos < len(data):
        pos += 16 + int.from_bytes(data[pos + 8 : pos + 12], "little")
        ends.append(pos)
    return ends


def test_end_of_pcap_when_cut_at_any_byte_then_it_is_the_last_whole_record(capture, tmp_path):
    data = capture[:1000]
    whole = [end for end in _records(capture) if end <= 1000]
    for size in range(len(data) + 1):
        source = _source(tmp_path, "a.pcap", data[:size])
        last = max((end for end in whole if 24 < end <= size), default=0)
        assert growth.end_of(source, 0, _ALL, _NEVER) == last, size
        assert growth.end_of(source, 0, _ALL, _NOW) == size
        if last:
            assert growth.end_of(source, last, _ALL, _NEVER) == last


def test_end_of_pcap_when_more_is_there_than_asked_for_then_it_ends_at_a_record(capture, tmp_path):
    source = _source(tmp_path, "a.pcap", capture)
    ends = _records(capture)
    begin, seen = 0, []
    while begin < len(capture):
        begin = growth.end_of(source, begin, 400, _NEVER)
        seen.append(begin)
    assert set(seen) <= set(ends) and len(seen) > 3


def test_end_of_damaged_pcap_when_settled_then_all_else_up_to_the_damage(capture, tmp_path):
    ends = _records(capture)
    damaged = capture[: ends[3]] + b"\xff" * 16 + capture[ends[4] :]
    source = _source(tmp_path, "a.pcap", damaged)
    assert growth.end_of(source, 0, _ALL, _NEVER) == ends[3]
    assert growth.end_of(source, 0, _ALL, _NOW) == len(damaged)


def test_end_of_gzip_when_not_settled_then_nothing(capture, tmp_path):
    data = gzip.compress(capture)
    source = _source(tmp_path, "a.pcap.gz", data)
    assert growth.end_of(source, 0, _ALL, _NEVER) == 0
    assert growth.end_of(source, 0, _ALL, _NOW) == len(data)
    assert growth.ranges(source, 0, len(data), 100) == [(0, None)]


def test_end_of_json_lines_when_cut_at_any_byte_then_it_is_the_last_line_end(tmp_path):
    data = b"first\nsecond\n\nlast\n"
    for size in range(len(data) + 1):
        source = _source(tmp_path, "a.jsonl", data[:size])
        assert growth.end_of(source, 0, _ALL, _NEVER) == data.rfind(b"\n", 0, size) + 1
        assert growth.end_of(source, 0, _ALL, _NOW) == size
    assert growth.end_of(source, 0, 8, _NEVER) == 6
    assert growth.end_of(source, 6, 3, _NEVER) == 13  # a line longer than asked for


def test_ranges_of_pcap_when_put_together_then_every_record_once(capture, tmp_path):
    source = _source(tmp_path, "a.pcap", capture)
    found = growth.ranges(source, 0, len(capture), 700)
    assert len(found) > 3
    assert [begin for begin, _ in found[1:]] == [until for _, until in found[:-1]]
    assert {begin for begin, _ in found[1:]} <= set(_records(capture))
    numbers = []
    for begin, until in found:
        for frames in files.read_frames(source.path, Tally(), begin, until):
            numbers += (frames.start - 16 + frames.base).tolist()
    assert numbers == _records(capture)[:-1]


def test_ranges_of_json_lines_when_read_then_every_line_once(tmp_path):
    line = {"tst": "2026-01-01T00:00:00Z", "topic": "a", "qos": 0, "payloadlen": 0, "payload": ""}
    data = b"".join(json.dumps({**line, "mid": n}).encode() + b"\n" for n in range(50))
    source = _source(tmp_path, "a.jsonl", data)
    found = growth.ranges(source, 0, len(data), 500)
    assert len(found) > 5
    rows = []
    for begin, until in found:
        for batch in jsonl.read_events(source, Tally(), begin, until):
            rows += batch["packet_id"].to_pylist()
    assert rows == list(range(50))


def _told(reader, start, end):
    tables = [
        pack.load([row["part"]])
        for part in reader.partitions(start, end)
        for batch in reader.read(part)
        for row in batch.to_pylist()
    ]
    rows = [row for table in tables for row in table.to_pylist() if "counter" in row]
    return [(one["site"], one["capture"], one["detail"]) for one in rows if one["detail"]]


def test_file_that_is_no_capture_is_told_once_and_when_nobody_writes_to_it(tmp_path):
    (tmp_path / "north").mkdir()
    (tmp_path / "north" / "notes.txt").write_text("by hand")
    busy = growing.GrowingReader({"path": str(tmp_path), "settle": "inf"})
    assert busy.latestOffset({}, ReadAllAvailable()) == {}
    reader = growing.GrowingReader({"path": str(tmp_path), "settle": "0"})
    first = reader.latestOffset({}, ReadAllAvailable())
    said = "neither a capture nor named .jsonl or .ndjson"
    assert _told(reader, {}, first) == [("north", "north/notes.txt", said)]
    (tmp_path / "north" / "notes.txt").write_text("by hand, and more")
    second = reader.latestOffset(first, ReadAllAvailable())
    assert reader.partitions(first, second) == []


def test_file_deleted_before_it_was_read_is_told(capture, tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(capture)
    reader = growing.GrowingReader({"path": str(tmp_path), "settle": "0"})
    end = reader.latestOffset({}, ReadAllAvailable())
    (part,) = reader.partitions({}, end)
    path.unlink()
    assert _told(reader, {}, end) == [("default", "a.pcap", "was deleted before it was read")]
    tables = [pack.load([row["part"]]) for b in reader.read(part) for row in b.to_pylist()]
    assert [table["detail"].to_pylist() for table in tables] == [
        ["cannot be opened: No such file or directory"]
    ]
    assert _told(reader, end, reader.latestOffset(end, ReadAllAvailable())) == []


def test_file_deleted_while_the_folder_is_looked_at_stops_nothing(capture, tmp_path, monkeypatch):
    gone = [
        files.Source(str(tmp_path / name), name, "default", size_bytes=9)
        for name in ("a.pcap", "b.jsonl", "c.pcap.gz")
    ]
    monkeypatch.setattr(files, "listed", lambda _: gone)
    reader = growing.GrowingReader({"path": str(tmp_path), "settle": "0"})
    assert reader.latestOffset({}, ReadAllAvailable()) == {}
    assert len(source.ranges(gone, True, 1 << 20)) == 3


def test_capture_when_a_shorter_one_takes_its_name_then_it_is_read_from_its_beginning(
    capture, tmp_path
):
    path = tmp_path / "a.pcap"
    path.write_bytes(capture)
    reader = growing.GrowingReader({"path": str(tmp_path), "settle": "0"})
    first = reader.latestOffset({}, ReadAllAvailable())
    assert first == {"a.pcap": len(capture)}
    shorter = capture[: _records(capture)[5]]
    path.write_bytes(shorter)
    second = reader.latestOffset(first, ReadAllAvailable())
    assert second == {"a.pcap": len(shorter)}
    assert [(part.begin, part.until) for part in reader.partitions(first, second)] == [
        (0, len(shorter))
    ]
    assert reader.latestOffset(second, ReadAllAvailable()) == second
    assert reader.partitions(second, second) == []
