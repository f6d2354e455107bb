"""TCP streams -> packets, however the network treats the segments."""

import random

import pytest

from host_tests.fleet.captures import (
    C2S,
    S2C,
    SERVER,
    Capture,
    audit,
    begun,
    connected,
    decode,
    decode_all,
    pieces,
    rows,
    simulated,
    types,
)
from host_tests.fleet.simulate import tcp
from host_tests.fleet.simulate.run import Plan
from host_tests.standin import packets

_COLUMNS = ("packet_type", "topic", "packet_id", "payload_bytes", "payload_hash")


def _packets(rng, count=30):
    made = [packets.connect(b"c1", level=4)]
    for number in range(count):
        size = rng.choice([0, 1, 20, 100, 130, 2000, 20_000])
        payload = rng.randbytes(size)
        made.append(packets.publish(b"t/%d" % number, payload, 1, number + 1))
        made.append(packets.puback(number + 1))
    return made


def _segments(rng, data, most):
    cuts, pos = [], 0
    while pos < len(data):
        cuts.append((pos, data[pos : pos + rng.randint(1, most)]))
        pos += len(cuts[-1][1])
    return cuts


def _write(tmp_path, segments, isn, has_syn=True):
    capture, talk = begun(isn=isn)
    if has_syn:
        talk.segment(C2S, b"", tcp.SYN, seq=isn)
    for place, payload in segments:
        talk.segment(C2S, payload, seq=isn + 1 + place)
    return capture.write(tmp_path / "one.pcap")


def _rows(events):
    return [row for row in rows(events, *_COLUMNS) if not row[0].startswith("TCP")]


@pytest.mark.parametrize("seed", range(40))
def test_stream_when_segments_are_cut_repeated_overlapped_and_swapped_gives_all(seed, tmp_path):
    rng = random.Random(seed)
    made = _packets(rng)
    segments = _segments(rng, b"".join(made), rng.choice([5, 100, 1460, 30_000]))
    straight = _rows(decode(_write(tmp_path, segments, 1000))[0])
    assert len(straight) == len(made)
    rough = []
    data = b"".join(made)
    for place, payload in segments:
        more = rng.randrange(0, 40)
        rough.append((place, data[place : place + len(payload) + more]))
        if rng.random() < 0.2:
            back = max(0, place - rng.randrange(200))
            rough.append((back, data[back : place + len(payload)]))
    for place in range(0, len(rough) - 5, 5):
        some = rough[place : place + 5]
        rng.shuffle(some)
        rough[place : place + 5] = some
    isn = rng.choice([0, 1000, (1 << 32) - 3000, (1 << 31) - 2000])
    events, _ = decode(_write(tmp_path, rough, isn), chunk_bytes=rng.choice([3_000, 1 << 24]))
    assert _rows(events) == straight
    assert events["packet_type"].to_pylist().count("GAP") == 0


@pytest.mark.parametrize("seed", range(40))
def test_stream_when_bytes_are_missing_invents_nothing(seed, tmp_path):
    rng = random.Random(seed)
    made = _packets(rng)
    segments = _segments(rng, b"".join(made), rng.choice([20, 300, 1460]))
    whole = _rows(decode(_write(tmp_path, segments, 1000))[0])
    lost = set(rng.sample(range(1, len(segments) - 1), max(1, len(segments) // 15)))
    kept = [one for place, one in enumerate(segments) if place not in lost]
    events, _ = decode(_write(tmp_path, kept, 1000))
    found = [row for row in _rows(events) if row[0] in ("CONNECT", "PUBLISH", "PUBACK")]
    left = list(whole)
    for row in found:
        assert row in left, "a packet that was never sent"
        left = left[left.index(row) + 1 :]
    missing = sum(n for kind, n in rows(events, "packet_type", "payload_bytes") if kind == "GAP")
    assert missing == sum(len(segments[place][1]) for place in lost)


def test_stream_after_a_gap_goes_on_at_the_next_packet():
    """The tail of a cut packet and a whole packet share a segment."""
    capture, talk = connected()
    first = packets.publish(b"one", b"x" * 300)
    talk.segment(C2S, first[:100])
    talk.wire.seq[C2S] += 50
    talk.segment(C2S, first[150:] + packets.publish(b"two", b"y" * 50, 1, 5))
    talk.publish(C2S, b"three", b"z", 1, 6)
    events = capture.events()
    assert [t for t in events["topic"].to_pylist() if t] == ["two", "three"]
    assert ("GAP", 50) in rows(events, "packet_type", "payload_bytes")


def test_what_waits_for_missing_bytes_keeps_its_place_when_it_comes_a_second_time(tmp_path):
    """Files overlap: the second copies come late."""
    capture = Capture()
    talk, head = capture.connection(), len(capture.frames)
    talk.wire.seq[C2S] += 4  # never come
    for number in range(1, 6):
        talk.publish(C2S, b"t", b"%d" % number)
        talk.publish(S2C, b"t", b"%d" % number)
    paths = []
    for name, some in (("a", slice(0, head + 7)), ("b", slice(head + 1, None))):
        paths.append(tmp_path / (name + ".pcap"))
        paths[-1].write_bytes(tcp.PCAP_HEADER * (name > "a") + b"".join(capture.frames[some]))
    events = decode_all(paths)[0].sort_by("number")
    found = rows(events, "packet_type", "direction", "ts")
    found = [(side, ts) for kind, side, ts in found if kind == "PUBLISH"]
    assert [side for side, _ in found] == ["c2s", "s2c"] * 5
    times = [ts for _, ts in found]
    assert times == sorted(set(times))


def test_bytes_that_were_cut_off_at_the_end_of_a_stream_are_missing():
    """Frames cut short behind TCP's header: nothing of MQTT is left."""
    capture, talk = connected()
    talk.segment(C2S, b"", tcp.FIN | tcp.ACK)
    header = len(tcp.Connection(SERVER, SERVER, 1, 0, 0).frame(0, 0)) - 16
    cut = []
    for frame in capture.frames[1:]:
        size = (len(frame) - 16).to_bytes(4, "little")
        held = min(len(frame) - 16, header).to_bytes(4, "little")
        cut.append(frame[:8] + held + size + frame[16 : 16 + header])
    capture.frames[1:] = cut
    events = capture.events()
    missing = rows(events, "packet_type", "direction")
    assert {("GAP", "c2s"), ("GAP", "s2c")} <= set(missing)
    assert ("socket_left",) not in rows(audit(events)["findings"], "finding")


def test_what_waits_at_the_end_is_of_the_file_that_its_connection_was_seen_in_last(tmp_path):
    paths = []
    for name in ("a", "b"):
        capture, talk = connected(name.encode())
        talk.wire.seq[C2S] += 30  # bytes that never come
        talk.publish(C2S, name.encode(), b"x" * 20)
        paths.append(capture.write(tmp_path / (name + ".pcap")))
    events, _ = decode_all(paths)
    found = rows(events, "packet_type", "client_id", "capture")
    assert {("GAP", "a", "a.pcap"), ("GAP", "b", "b.pcap")} <= set(found)
    assert {("PUBLISH", "a", "a.pcap"), ("PUBLISH", "b", "b.pcap")} <= set(found)


def test_connection_that_began_before_the_capture_is_decoded_from_its_first_packet():
    capture, talk = begun()
    talk.segment(C2S, b"\xff\x00tail of something")
    talk.exchange(C2S, b"t", b"1", 7)
    events = capture.events()
    assert types(events) == {"PUBLISH": 1, "PUBACK": 1}
    assert set(events["client_id"].to_pylist()) == {None}


@pytest.mark.parametrize("isn", [5, (1 << 32) - 1])
def test_port_used_again_is_a_new_connection(isn):
    capture, one = connected(b"first", port=45_000, isn=100)
    one.publish(C2S, b"t", b"1")
    two = capture.middle(b"first", port=45_000, isn=isn)
    two.segment(C2S, b"", tcp.SYN)
    two.send(C2S, packets.connect(b"second", level=4))
    names = dict(rows(capture.events(), "connection", "client_id"))
    assert sorted(names.values()) == ["first", "second"]


@pytest.mark.parametrize(
    "first", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"]
)
def test_other_protocols_on_the_port_are_noted_once_and_left_alone(first):
    capture = Capture()
    rng = random.Random(3)
    talk = capture.middle().open()
    talk.segment(C2S, first)
    for _ in range(300):
        talk.segment(rng.randrange(2), rng.randbytes(rng.randrange(2, 300)))
    events = capture.events()
    assert types(events) == {}
    kinds = events["packet_type"].to_pylist()
    assert 1 <= kinds.count("NOT_MQTT") <= 2


def test_length_of_five_bytes_is_malformed_and_the_next_segment_goes_on():
    """31-2.1-LEN"""
    capture, talk = connected()
    talk.send(C2S, b"\x30\xff\xff\xff\xff\x01" + bytes(20))
    talk.publish(C2S, b"t", b"1")
    events = capture.events()
    assert events["packet_type"].to_pylist().count("MALFORMED") == 1
    assert types(events)["PUBLISH"] == 1


def test_hostile_length_that_is_never_filled_is_reported_incomplete():
    capture, talk = connected()
    talk.send(C2S, b"\x30\xff\xff\xff\x7f\x00\x01t" + bytes(1000))
    events = capture.events()
    assert ("INCOMPLETE", 1008) in rows(events, "packet_type", "payload_bytes")
    assert "PUBLISH" not in types(events)


def _comparable(events, names):
    order = ("connection", "number", "direction", "packet_type")
    return sorted(rows(events, *order, *names), key=repr)


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_the_same_however_the_file_is_read_or_split(seed, tmp_path):
    """Any chunk size, and any split into files at frames."""
    plan = Plan(devices=6, readings=200, seed=seed, fault_rate=0.2, wire_rate=0.3, gap_rate=0.01)
    data, _ = simulated(plan)
    path = tmp_path / "whole.pcap"
    path.write_bytes(data)
    names = ("client_id", "ts", "topic", "packet_id", "payload_hash", "detail", "level")
    whole = _comparable(decode(path)[0], names)
    rng = random.Random(seed)
    for chunk in (700, 5_000, rng.randrange(200, 100_000)):
        assert _comparable(decode(path, chunk_bytes=chunk)[0], names) == whole
    parts = [tmp_path / ("part-%d.pcap" % number) for number in range(5)]
    for path, part in zip(parts, pieces(data, rng, 5), strict=True):
        path.write_bytes(part)
    assert _comparable(decode_all(parts)[0], names) == whole
