"""Capture files: every format and link type gives the same packets, damage is named."""

import gzip
import struct

import pytest

from host_tests.fleet import link_frames
from host_tests.fleet.dialogue import decode, rows, types
from tools.fleet.capture import files
from tools.fleet.capture.frames import Tally
from tools.fleet.simulate import wire

_HELLO = wire.connect(b"dev", 4, True, 60)
_MESSAGE = wire.publish(0x30, b"a/b", None, b"payload", 4)
_CASES = sorted(link_frames.cases(b""))


def _frames(name):
    first = link_frames.cases(link_frames.tcp(_HELLO, 1))[name]
    second = link_frames.cases(link_frames.tcp(_MESSAGE, 1 + len(_HELLO)))[name]
    return first[0], [first[1], second[1]]


def _decode(data, tmp_path, **more):
    path = tmp_path / "one.pcap"
    path.write_bytes(data)
    return decode(path, **more)


@pytest.mark.parametrize("name", _CASES)
def test_link_type_when_decoded_gives_the_packets_inside(name, tmp_path):
    link, frames = _frames(name)
    events, tally = _decode(link_frames.pcap(frames, link), tmp_path)
    assert types(events) == {"CONNECT": 1, "PUBLISH": 1}
    assert events["topic"].to_pylist()[1] == "a/b"
    assert events["payload_bytes"].to_pylist()[1] == 7
    assert events["client_id"].to_pylist() == ["dev", "dev"]
    assert not tally.errors


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_of_any_byte_order_and_resolution_gives_the_same_times(order, nano, tmp_path):
    link, frames = _frames("vlan")
    events, _ = _decode(link_frames.pcap(frames, link, order, nano), tmp_path)
    times = [ts.timestamp() for ts in events["ts"].to_pylist()]
    assert times == [1_700_000_000.25, 1_700_000_001.25]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("resolution", [None, 3, 6, 9, 0x80 | 10])
def test_pcapng_of_any_byte_order_and_resolution_gives_the_same_times(order, resolution, tmp_path):
    # Two interfaces of different link types; the connection goes over both.
    link, (first, _) = _frames("ethernet ipv4")
    other, (_, second) = _frames("raw ipv4")
    data = link_frames.pcapng([(0, first), (1, second)], [link, other], order, resolution)
    events, tally = _decode(data, tmp_path)
    assert types(events) == {"CONNECT": 1, "PUBLISH": 1}
    assert [ts.timestamp() for ts in events["ts"].to_pylist()] == [1700000000.25, 1700000001.25]
    assert not tally.errors


def test_pcapng_when_a_time_is_impossible_then_the_block_is_named_and_read(tmp_path):
    link, (first, second) = _frames("ethernet ipv4")
    data = bytearray(link_frames.pcapng([(0, first), (0, second)], [link]))
    place = data.index(struct.pack("<I", 6))
    data[place + 12 : place + 20] = b"\xff" * 8
    events, tally = _decode(bytes(data), tmp_path)
    assert types(events) == {"CONNECT": 1, "PUBLISH": 1}
    assert tally.errors == [(place, "packet block with an impossible time")]


def test_pcapng_of_several_sections_and_simple_packets_is_read_through(tmp_path):
    link, (first, second) = _frames("ethernet ipv4")
    data = link_frames.pcapng([(0, first)], [link], "<") + link_frames.pcapng(
        [second], [link], ">"
    )
    events, tally = _decode(data, tmp_path)
    assert types(events) == {"CONNECT": 1, "PUBLISH": 1}
    assert not tally.errors


def test_gzip_when_whole_or_cut_short_gives_what_is_there(tmp_path):
    link, frames = _frames("vlan")
    data = gzip.compress(link_frames.pcap(frames, link))
    events, tally = _decode(data, tmp_path)
    assert types(events) == {"CONNECT": 1, "PUBLISH": 1}
    assert not tally.errors
    _, tally = _decode(data[:-12], tmp_path)
    assert tally.errors[-1][1].startswith(("gzip", "record"))


def test_fragments_and_other_traffic_are_counted_not_decoded(tmp_path):
    segment = link_frames.tcp(_HELLO)
    frames = [
        link_frames.ipv4(segment, fragment=0x2000),
        link_frames.ipv4(segment[8:], fragment=1),
        link_frames.ipv4(bytes(20), proto=17),
        link_frames.ipv4(link_frames.tcp(b"")[:12]),
        link_frames.ipv4(struct.pack(">HHIIHHHH", 5, 6, 0, 0, 0x5018, 0, 0, 0) + b"x"),
    ]
    events, tally = _decode(link_frames.pcap(frames, 101), tmp_path)
    assert events is None
    assert tally.counts["fragments"] == 2
    assert tally.counts["other_frames"] == 3
    assert tally.counts["cut_headers"] == 1
    assert tally.counts["other_ports"] == 1


def test_ports_when_given_choose_what_is_mqtt(tmp_path):
    link, frames = _frames("raw ipv4")
    data = link_frames.pcap([f.replace(b"\x07\x5b", b"\x07\x5c", 1) for f in frames], link)
    assert _decode(data, tmp_path)[0] is None
    assert types(_decode(data, tmp_path, ports=(1883, 1884))[0]) == {"CONNECT": 1, "PUBLISH": 1}


def test_damaged_record_is_skipped_and_named_by_its_byte(tmp_path):
    link, frames = _frames("raw ipv4")
    data = bytearray(link_frames.pcap(frames + [frames[1]] * 20, link))
    place = 24 + 16 + len(frames[0]) + 2 * (16 + len(frames[1]))
    data[place + 8 : place + 12] = b"\xff\xff\xff\x7f"
    events, tally = _decode(bytes(data), tmp_path)
    assert tally.errors == [(place, "damaged record: %d bytes skipped" % (16 + len(frames[1])))]
    assert types(events)["CONNECT"] == 1
    assert tally.counts["frames"] == 21


def test_cut_short_file_gives_all_before_the_cut(tmp_path):
    link, frames = _frames("raw ipv4")
    data = link_frames.pcap(frames, link)
    for size in range(24 + 16 + len(frames[0]), len(data)):
        events, tally = _decode(data[:size], tmp_path)
        assert types(events) == {"CONNECT": 1}
        is_even = size == 24 + 16 + len(frames[0])
        assert [at for at, _ in tally.errors] == ([] if is_even else [24 + 16 + len(frames[0])])


@pytest.mark.parametrize(
    "data", [b"", b"\xd4\xc3\xb2\xa1", b"hello, world", bytes(100), b"\n\r\r\n"]
)
def test_file_that_is_no_capture_is_named_and_yields_nothing(data, tmp_path):
    events, tally = _decode(data, tmp_path)
    assert events is None
    assert len(tally.errors) == 1


def test_snap_length_when_packets_are_cut_records_a_gap(tmp_path):
    link, (first, second) = _frames("raw ipv4")
    third = link_frames.cases(link_frames.tcp(_MESSAGE, 1 + len(_HELLO) + len(_MESSAGE)))
    third = third["raw ipv4"][1]
    size = len(second) - 4
    data = link_frames.pcap([first], link)
    data += struct.pack("<IIII", 1_700_000_001, 0, size, len(second)) + second[:size]
    data += struct.pack("<IIII", 1_700_000_002, 0, len(third), len(third)) + third
    events, _ = _decode(data, tmp_path)
    gap = [size for kind, size in rows(events, "packet_type", "payload_bytes") if kind == "GAP"]
    assert gap == [4]
    assert types(events) == {"CONNECT": 1, "PUBLISH": 1}


def test_ranges_of_a_large_file_meet_without_loss_or_repetition(tmp_path):
    link, frames = _frames("raw ipv4")
    # Payloads that hold a capture themselves must not mislead the search.
    bait = link_frames.ipv4(link_frames.tcp(link_frames.pcap([bytes(40)] * 20, 1)[24:]))
    path = tmp_path / "large.pcap"
    path.write_bytes(link_frames.pcap((frames + [bait] * 3) * 2000, link))
    size = path.stat().st_size
    parts = files.ranges(str(path), size // 7)
    assert len(parts) >= 6
    starts, tally = [], Tally()
    for begin, until in parts:
        for run in files.read_frames(str(path), tally, begin, until, chunk_bytes=50_000):
            starts += (run.base + run.start).tolist()
    whole = []
    for run in files.read_frames(str(path), Tally()):
        whole += (run.base + run.start).tolist()
    assert starts == whole
    assert not tally.errors


def test_folder_gives_captures_by_content_and_sub_folders_as_sites(tmp_path):
    link, frames = _frames("raw ipv4")
    data = link_frames.pcap(frames, link)
    (tmp_path / "north" / "gate").mkdir(parents=True)
    (tmp_path / "a.pcap").write_bytes(data)
    (tmp_path / "north" / "trace").write_bytes(data)
    (tmp_path / "north" / "gate" / "b.pcapng.gz").write_bytes(gzip.compress(data))
    (tmp_path / "notes.txt").write_text("not a capture")
    found = [(source.capture, source.site) for source in files.find(tmp_path)]
    assert found == [
        ("a.pcap", "default"),
        ("north/gate/b.pcapng.gz", "north/gate"),
        ("north/trace", "north"),
    ]
