"""Capture files: every format and link type gives the same packets, damage is named."""

import bz2
import gzip
import lzma
import os
import random
import struct
from functools import partial

import pyarrow as pa
import pytest

from host_tests.fleet import link_frames
from host_tests.fleet.captures import decode, rows, types
from host_tests.standin import packets
from tools.fleet.capture import files, pcap
from tools.fleet.capture.frames import Tally
from tools.fleet.report import collect

_HELLO = packets.connect(level=4)
_MESSAGE = packets.publish(b"a/b", b"payload")
_BOTH, _TIMES = {"CONNECT": 1, "PUBLISH": 1}, [1_700_000_000.25, 1_700_000_001.25]


def _frames(name):
    first = link_frames.cases(link_frames.tcp(_HELLO, 1))[name]
    second = link_frames.cases(link_frames.tcp(_MESSAGE, 1 + len(_HELLO)))[name]
    return first[0], [first[1], second[1]]


def _decode(data, tmp_path, **more):
    path = tmp_path / "one.pcap"
    path.write_bytes(data)
    return decode(path, **more)


@pytest.mark.parametrize("name", sorted(link_frames.cases(b"")))
def test_link_type_when_decoded_gives_the_packets_inside(name, tmp_path):
    link, frames = _frames(name)
    events, tally = _decode(link_frames.pcap(frames, link), tmp_path)
    assert types(events) == _BOTH
    assert events["topic"].to_pylist()[1] == "a/b"
    assert events["payload_bytes"].to_pylist()[1] == 7
    assert events["client_id"].to_pylist() == ["dev", "dev"]
    assert not tally.errors


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_of_any_byte_order_and_resolution_gives_the_same_times(order, nano, tmp_path):
    link, frames = _frames("vlan")
    events, _ = _decode(link_frames.pcap(frames, link, order, nano), tmp_path)
    assert [ts.timestamp() for ts in events["ts"].to_pylist()] == _TIMES


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("resolution", [None, 3, 6, 9, 0x80 | 10])
def test_pcapng_of_any_byte_order_and_resolution_gives_the_same_times(order, resolution, tmp_path):
    # Two interfaces of different link types; the connection goes over both.
    link, (first, _) = _frames("ethernet ipv4")
    other, (_, second) = _frames("raw ipv4")
    data = link_frames.pcapng([(0, first), (1, second)], [link, other], order, resolution)
    events, tally = _decode(data, tmp_path)
    assert types(events) == _BOTH
    assert [ts.timestamp() for ts in events["ts"].to_pylist()] == _TIMES
    assert not tally.errors


def test_pcapng_when_a_time_is_impossible_then_the_block_is_named_and_read(tmp_path):
    link, (first, second) = _frames("ethernet ipv4")
    data = bytearray(link_frames.pcapng([(0, first), (0, second)], [link]))
    place = data.index(struct.pack("<I", 6))
    data[place + 12 : place + 20] = b"\xff" * 8
    events, tally = _decode(bytes(data), tmp_path)
    assert types(events) == _BOTH
    assert tally.errors == [(place, "packet block with an impossible time")]


def test_pcapng_of_several_sections_and_simple_packets_is_read_through(tmp_path):
    link, (first, second) = _frames("ethernet ipv4")
    one, other = (
        link_frames.pcapng([(0, first)], [link]),
        link_frames.pcapng([second], [link], ">"),
    )
    events, tally = _decode(one + other, tmp_path)
    assert types(events) == _BOTH
    assert not tally.errors


_PACKERS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
_PACKERS["zst"] = partial(pa.compress, codec="zstd", asbytes=True)


@pytest.mark.parametrize("ending", _PACKERS)
def test_compressed_file_of_any_name_gives_the_packets_inside(ending, tmp_path):
    link, frames = _frames("vlan")
    data = _PACKERS[ending](link_frames.pcap(frames, link))
    for name in ("one.pcap." + ending, "trace"):
        (tmp_path / name).write_bytes(data)
    found = files.survey(tmp_path)
    assert [source.problem for source in found] == [None, None]
    for source in found:
        events, tally = decode(tmp_path / source.capture)
        assert types(events) == _BOTH
        assert not tally.errors


@pytest.mark.parametrize("ending", _PACKERS)
def test_compressed_file_when_cut_short_gives_what_is_there_and_says_so(ending, tmp_path):
    link, frames = _frames("vlan")
    noise = [random.Random(n).randbytes(1400) for n in range(1500)]
    noise = [link_frames.ipv4(b"", options=b"", proto=17) + one for one in noise]
    whole = _PACKERS[ending](link_frames.pcap(frames + [bytes(14) + one for one in noise], link))
    events, tally = _decode(whole[: len(whole) // 2], tmp_path)
    assert types(events) == _BOTH
    ((_, text),) = tally.errors
    assert text.startswith(("gzip", "zstd", "xz", "bz2"))


@pytest.mark.parametrize("size", [12, -12])
def test_compressed_file_of_which_the_head_or_all_but_the_end_is_there_is_named_once(
    size, tmp_path
):
    data = link_frames.pcap(*reversed(_frames("vlan")))
    _, tally = _decode(gzip.compress(data)[:size], tmp_path)
    ((_, text),) = tally.errors
    assert text.startswith("gzip")


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


def _inside(segment):
    four, mac = link_frames.ipv4(segment), bytes(12)
    vxlan = (
        struct.pack(">HHHH", 5000, 4789, 24 + len(four), 0) + bytes(8) + mac + b"\x08\x00" + four
    )
    return {
        "inside_gre": (101, link_frames.ipv4(b"\0\0\x08\0" + four, proto=47)),
        "inside_ip_in_ip": (101, link_frames.ipv4(four, proto=4)),
        "inside_vxlan": (1, mac + b"\x08\x00" + link_frames.ipv4(vxlan, proto=17)),
        "inside_mpls": (1, mac + b"\x88\x47\0\1\x11\x40" + four),
        "inside_pppoe": (1, mac + b"\x88\x64\x11\0\0\1\0\x42\0\x21" + four),
        "link_type_127": (127, bytes(8) + four),
        "tcp_fragments": (101, link_frames.ipv4(segment, fragment=0x2000)),
    }


@pytest.mark.parametrize("name", _inside(b""))
def test_frames_that_nobody_looks_into_are_counted_by_name_and_said(name, tmp_path):
    link, frame = _inside(link_frames.tcp(_HELLO))[name]
    for data in (link_frames.pcap([frame], link), link_frames.pcapng([(0, frame)], [link, 101])):
        events, tally = _decode(data, tmp_path)
        assert events is None
        assert tally.counts[name] == tally.counts["other_frames"] == 1
    assert "1 f" in collect._not_looked_at(name, 1)


def test_ports_when_given_choose_what_is_mqtt_and_others_are_said(tmp_path):
    link, frames = _frames("raw ipv4")
    data = link_frames.pcap([f.replace(b"\x07\x5b", b"\x07\x5c", 1) for f in frames], link)
    events, tally = _decode(data, tmp_path)
    assert (events, tally.counts["mqtt_on_port_1884"]) == (None, 1)
    events, tally = _decode(data, tmp_path, ports=(1883, 1884))
    assert types(events) == _BOTH
    assert "mqtt_on_port_1884" not in tally.counts


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


def test_snap_length_that_cuts_packets_is_said_and_records_a_gap(tmp_path):
    link, (first, second) = _frames("raw ipv4")
    third = link_frames.cases(link_frames.tcp(_MESSAGE, 1 + len(_HELLO) + len(_MESSAGE)))
    third = third["raw ipv4"][1]
    size = len(second) - 4
    data = link_frames.pcap([first], link)
    for frame, held in ((second, size), (third, len(third)), (third, 30)):  # of a header the last
        data += struct.pack("<IIII", 1_700_000_001, 0, held, len(frame)) + frame[:held]
    events, tally = _decode(data, tmp_path)
    assert "2 frames" in collect._not_looked_at("cut_frames", tally.counts["cut_frames"])
    gap = [size for kind, size in rows(events, "packet_type", "payload_bytes") if kind == "GAP"]
    assert gap == [4]
    assert types(events) == _BOTH


def _starts(path, tally, parts=((0, None, ()),)):
    starts = []
    for part in parts:
        for run in files.read_frames(path, tally, *part, chunk_bytes=50_000):
            starts += zip((run.base + run.start).tolist(), run.ts.tolist(), strict=True)
    return starts


def _assert_ranges_meet(path, data, count):
    """In at least so many parts less one -> what is known where each begins."""
    path.write_bytes(data)
    parts, tally = files.ranges(path, len(data) // count), Tally()
    assert len(parts) >= count - 1
    assert _starts(path, tally, parts) == _starts(path, Tally())
    assert not tally.errors
    return [known for _, _, known in parts]


def test_ranges_of_a_large_file_meet_without_loss_or_repetition(tmp_path):
    link, frames = _frames("raw ipv4")
    # Payloads that hold a capture themselves must not mislead the search.
    bait = link_frames.ipv4(link_frames.tcp(link_frames.pcap([bytes(40)] * 20, 1)[24:]))
    data = link_frames.pcap((frames + [bait] * 3) * 2000, link)
    _assert_ranges_meet(tmp_path / "large.pcap", data, 7)


def test_damage_near_a_cut_is_passed_in_few_walks(tmp_path, monkeypatch):
    link, frames = _frames("raw ipv4")
    count, record = 8_000, 16 + len(frames[0])
    data = bytearray(link_frames.pcap(frames[:1] * 3 * count, link))
    place = 24 + count * record
    data[place : place + 16] = bytes(16)
    (tmp_path / "a.pcap").write_bytes(data)
    steps, step = [], pcap.Walker.step
    monkeypatch.setattr(pcap.Walker, "step", lambda *a: steps.append(a[2]) or step(*a))
    _, (cut, *_), *_ = files.ranges(tmp_path / "a.pcap", place - 24)
    assert cut == place + record
    assert len(steps) < 20 * count  # not so many for each


def _blocks(links, count, order="<", resolution=None):
    # A section in which every fourth packet holds a capture itself.
    bait = link_frames.tcp(link_frames.pcapng([(0, bytes(40))] * 20, [1], order))
    frames = [link_frames.ipv4(link_frames.tcp(_MESSAGE)), link_frames.ipv4(bait)]
    packets = [(n % len(links), frames[n % 4 == 0]) for n in range(count)]
    return link_frames.pcapng(packets, links, order, resolution)


def test_ranges_of_a_large_pcapng_meet_without_loss_or_repetition(tmp_path):
    data = _blocks([101], 9000) + _blocks([101, 228], 9000, ">", 9)
    known = _assert_ranges_meet(tmp_path / "large.pcapng", data, 9)
    assert {order for order, _ in known[1:]} == {"<", ">"}


def test_range_of_a_pcapng_when_an_interface_is_named_late_then_it_is_known(tmp_path):
    one, other = _blocks([101], 9000), _blocks([101, 228], 9000)
    # The second section's head left out: its interfaces go on behind the first one's.
    late = other[other.index(struct.pack("<II", 1, 20)) + 20 :]
    _assert_ranges_meet(tmp_path / "late.pcapng", one + late, 9)


def test_damaged_block_is_skipped_and_named_by_its_byte(tmp_path):
    link, frames = _frames("raw ipv4")
    data = bytearray(link_frames.pcapng([(0, f) for f in (frames + [frames[1]] * 20)], [link]))
    place = len(link_frames.pcapng([(0, frames[0])], [link]))
    size = struct.unpack_from("<I", data, place + 4)[0]
    struct.pack_into("<I", data, place + 4, 7)
    events, tally = _decode(bytes(data), tmp_path)
    # The block of statistics behind it is skipped with it: the next packet is sure.
    assert tally.errors == [(place, "damaged block: %d bytes skipped" % (size + 24))]
    assert types(events)["CONNECT"] == 1
    assert tally.counts["frames"] == 21


def test_links_are_followed_and_those_that_lead_back_or_nowhere_end(tmp_path):
    elsewhere, folder = tmp_path / "disk", tmp_path / "captures"
    elsewhere.mkdir()
    (folder / "north").mkdir(parents=True)
    (elsewhere / "a.pcap").write_bytes(link_frames.pcap(*reversed(_frames("raw ipv4"))))
    (folder / "south").symlink_to(elsewhere)
    (folder / "b.pcap").symlink_to(elsewhere / "a.pcap")
    (folder / "north" / "back").symlink_to(folder)
    (folder / "gone.pcap").symlink_to(tmp_path / "nowhere")
    assert [one.capture for one in files.listed(folder)] == ["b.pcap", "gone.pcap", "south/a.pcap"]
    tally = Tally()
    assert list(files.read_frames(str(folder / "gone.pcap"), tally)) == []
    assert tally.unread == ["cannot be opened: No such file or directory"]


def test_names_that_are_no_utf8_are_told_in_it(tmp_path):
    """Of a disk from a computer that spelt them in Latin-1."""
    folder = tmp_path / os.fsdecode(b"s\xfcd")
    folder.mkdir()
    (folder / os.fsdecode(b"\xe9.pcap")).write_bytes(link_frames.pcap([], 1))
    (source,) = files.survey(tmp_path)
    assert (source.site, source.capture) == ("s\\xfcd", "s\\xfcd/\\xe9.pcap")
    assert not list(files.read_frames(source.path, Tally()))


def test_folder_gives_captures_by_content_and_sub_folders_as_sites(tmp_path):
    link, frames = _frames("raw ipv4")
    data = link_frames.pcap(frames, link)
    (tmp_path / "north" / "gate").mkdir(parents=True)
    (tmp_path / "a.pcap").write_bytes(data)
    (tmp_path / "north" / "trace").write_bytes(data)
    (tmp_path / "north" / "gate" / "b.pcapng.gz").write_bytes(gzip.compress(data))
    (tmp_path / "notes.txt").write_text("not a capture")
    (tmp_path / "north" / "old.zip").write_bytes(b"PK\x03\x04 and so on")
    (tmp_path / "north" / "nothing").write_bytes(b"")
    found = files.survey(tmp_path)
    assert [(one.capture, one.site) for one in found if not one.problem] == [
        ("a.pcap", "default"),
        ("north/gate/b.pcapng.gz", "north/gate"),
        ("north/trace", "north"),
    ]
    unread = {one.capture: one.problem for one in found if one.problem}
    assert unread == {
        "notes.txt": "neither a capture nor named .jsonl or .ndjson",
        "north/nothing": "empty",
        "north/old.zip": "zip archive: unpack it first",
    }
