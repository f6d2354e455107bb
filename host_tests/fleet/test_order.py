"""Times in the wrong order: TCP's acknowledgements tell in which one packets came."""

import random

import pytest

from host_tests.fleet.captures import (
    C2S,
    S2C,
    Capture,
    audit,
    begun,
    connected,
    decode,
    decode_all,
    rows,
)
from host_tests.fleet.situations import derive
from host_tests.standin import packets


def _packets(path):
    events = decode(path)[0].sort_by("number")
    found = rows(events, "direction", "packet_type", "packet_id")
    return [one for one in found if not one[1].startswith("TCP")]


def _conversation(capture, rng, count=60):
    talk = capture.connection(b"dev")
    for number in range(1, count):
        side = rng.choice((C2S, S2C))
        for packet_id in range(2 * number, 2 * number + rng.choice((1, 1, 2))):
            talk.publish(side, b"t", b"%d" % number, 1, packet_id)
        talk.ack(1 - side, 0x40, 2 * number)
    return talk


def _jitter(frames, rng):
    """Each frame has a time of its own, wrong by up to 20 ms: cards, and files merged."""
    late = [(ts + rng.randrange(20_000), *rest) for ts, *rest in frames]
    return sorted(late, key=lambda one: one[0])


def _shuffle(frames, rng):
    """Frames get their times when they are written, in another order than they came in."""
    late = [ts + rng.randrange(20_000) for ts, *_ in frames]
    order = sorted(range(len(frames)), key=late.__getitem__)
    return _in_order(frames, order)


def _in_order(frames, order):
    # Those at these places, with the times of the first ones.
    return [(frames[place][0], *frames[at][1:]) for place, at in enumerate(order)]


def _changed(path, how):
    """The same file with other frames: what `how` makes of them."""
    header, frames = derive.read(path)
    derive.write_frames(path, header, how(frames))
    return path


@pytest.mark.parametrize("how", [_jitter, _shuffle])
@pytest.mark.parametrize("seed", range(10))
def test_packets_whose_times_are_wrong_are_in_the_order_that_tcp_tells(how, seed, tmp_path):
    rng, capture = random.Random(seed), Capture()
    _conversation(capture, rng)
    path = capture.write(tmp_path / "one.pcap")
    true = _packets(path)
    assert _packets(_changed(path, lambda frames: how(frames, rng))) == true
    # Nobody is accused, and no packet is older than one that stands before it.
    tables = audit(decode(path)[0])
    assert not tables["violations"].num_rows
    times = decode(path)[0].sort_by("number")["ts"].to_pylist()
    assert times == sorted(times)


@pytest.mark.parametrize("seed", range(5))
def test_answer_read_in_a_piece_before_that_of_its_message_is_its_answer(seed, tmp_path):
    """TCP tells the order of what is read together."""
    capture = Capture()
    talk = capture.connection(b"dev")
    for number in range(1, 40):
        talk.exchange(C2S, b"t", b"%d" % number, number, after_ms=30)
    path, rng = capture.write(tmp_path / "one.pcap"), random.Random(seed)
    events, _ = decode(_changed(path, lambda frames: _jitter(frames, rng)), chunk_bytes=300)
    assert set(audit(events)["messages"]["state"].to_pylist()) == {"complete"}


def test_both_answers_at_qos_2_read_in_pieces_before_their_message_are_its(tmp_path):
    """All that the broker sent comes first, and each frame is read by itself."""
    capture, talk = connected(b"dev")
    talk.exchange(C2S, b"t", b"1", 1, qos=2)
    path, head = capture.write(tmp_path / "one.pcap"), range(len(capture.frames) - 5)
    order = [*head, *(head.stop + place for place in (1, 3, 0, 2))]
    events, _ = decode(_changed(path, lambda frames: _in_order(frames, order)), chunk_bytes=100)
    assert audit(events)["messages"]["state"].to_pylist() == ["complete"]


def _mixed(tmp_path, *numbers):
    """What is read of these frames of a short conversation, in this order."""
    capture, talk = begun()
    for number in (1, 2, 3):
        talk.exchange(C2S, b"t", b"%d" % number, number)
    path = capture.write(tmp_path / "one.pcap")
    found = _packets(_changed(path, lambda frames: _in_order(frames, numbers)))
    return [(kind, number) for _, kind, number in found if kind != "GAP"]


def test_answer_that_stands_before_what_it_answers_is_put_behind_it(tmp_path):
    expected = [("PUBLISH", 1), ("PUBACK", 1), ("PUBLISH", 2), ("PUBACK", 2)]
    assert _mixed(tmp_path, 0, 1, 3, 2) == expected
    assert _mixed(tmp_path, 0, 2, 1, 3) == expected


def test_answer_to_what_was_not_captured_waits_for_nothing(tmp_path):
    found = _mixed(tmp_path, 0, 1, 3, 4, 5)
    kinds = [kind for kind, _ in found]
    assert kinds == ["PUBLISH", "PUBACK", "PUBACK", "PUBLISH", "PUBACK"]


def test_repeated_segment_that_was_acknowledged_long_ago_moves_nothing(tmp_path):
    expected = [("PUBLISH", 1), ("PUBACK", 1), ("PUBLISH", 2), ("PUBACK", 2)]
    assert _mixed(tmp_path, 0, 1, 2, 0, 3, 1) == expected


def test_repeated_segment_whose_first_was_not_captured_stays_before_its_answer(tmp_path):
    """Each of the two acknowledges the other one."""
    capture, talk = begun()
    talk.exchange(C2S, b"t", b"first", 1)
    seq = talk.wire.seq[C2S]
    del capture.frames[-2]  # and again, when the answer had come
    size = len(packets.publish(b"t", b"first", 1, 1))
    talk.segment(C2S, packets.publish(b"t", b"first", 1, 1), seq=seq - size)
    found = _packets(capture.write(tmp_path / "one.pcap"))
    assert [one[1] for one in found] == ["PUBLISH", "PUBACK"]


@pytest.mark.parametrize("late_s", [0.1, 5])
def test_directions_captured_with_two_clocks_are_two_connections_of_one_direction(
    late_s, tmp_path
):
    """Each in a file of its own; the second one begins while the first goes on, or behind it."""
    capture, rng = Capture(), random.Random(2)
    _conversation(capture, rng)
    header, frames = derive.read(capture.write(tmp_path / "both.pcap"))
    paths = []
    for side, some in enumerate((derive.only_from_clients, derive.only_from_the_broker)):
        late = [(ts + int(side * late_s * 1_000_000), *rest) for ts, *rest in some(frames)[0]]
        paths.append(tmp_path / ("%d.pcap" % side))
        derive.write_frames(paths[-1], header, late)
    tables = audit(decode_all(paths)[0])
    assert not tables["violations"].num_rows
    assert rows(tables["findings"], "finding").count(("one_direction",)) == 2
