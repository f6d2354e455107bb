"""Captures made of one recorded capture: what a capture itself can do to the traffic.

The frames are those of the situation `ordinary_traffic`, if no other is named: written
twice, in files that overlap, with other addresses, one direction only, a little out of
order, with wrong times, without their beginning, cut short.
"""

import random
import struct
from functools import partial

from .stage import Truth

SOURCE = "ordinary_traffic"
_RECORD = struct.Struct("<IIII")
_SKEW_US = 300  # between the two sides of an address translation
_SNAPLEN = 74  # headers and 20 bytes


def read(path):
    """-> (file header, [(microseconds, frame, length on the wire), …]) of a pcap file."""
    data = path.read_bytes()
    frames, at = [], 24
    while at < len(data):
        seconds, micros, held, size = _RECORD.unpack_from(data, at)
        at += 16
        frames.append((seconds * 1_000_000 + micros, data[at : at + held], size))
        at += held
    return data[:24], frames


def write_frames(path, header, frames):
    """Write such a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(header)
        for ts, frame, size in frames:
            file.write(_RECORD.pack(*divmod(ts, 1_000_000), len(frame), size) + frame)


def _from_client(frame):
    return frame[36:38] == b"\x07\x5b"  # to port 1883


def mirrored(frames):
    """A mirror port that sends each frame twice."""
    return [[frame for frame in frames for _ in range(2)]]


def overlapping_files(frames):
    """Two ring files with the middle third in both."""
    third = len(frames) // 3
    return [frames[: 2 * third], frames[third:]]


def same_file_twice(frames):
    return [frames, frames]


def both_sides_of_nat(frames):
    """Captured before and behind an address translation."""
    both = []
    for ts, frame, size in frames:
        both.append((ts, frame, size))
        both.append((ts + _SKEW_US, _translated(frame), size))
    return [sorted(both, key=lambda one: one[0])]


def _translated(frame):
    # Another client address and port; checksums are not looked at.
    address, port = (26, 34) if _from_client(frame) else (30, 36)
    number = int.from_bytes(frame[port : port + 2], "big") - 20_000
    frame = frame[:address] + bytes((198, 51, 100, 7)) + frame[address + 4 :]
    return frame[:port] + number.to_bytes(2, "big") + frame[port + 2 :]


def only_from_clients(frames):
    return [[one for one in frames if _from_client(one[1])]]


def only_from_the_broker(frames):
    return [[one for one in frames if not _from_client(one[1])]]


def swapped_frames(frames):
    """Two queues of a network card: answers are recorded before their causes."""
    out = list(frames)
    for at in range(1, len(out)):
        one, other = out[at - 1], out[at]
        close = other[0] - one[0] < 50_000
        if close and _from_client(one[1]) != _from_client(other[1]) and at % 2:
            out[at - 1], out[at] = other, one
    return [out]


def wrong_times(frames, most_us=5_000):
    """Two cards, or files that were merged: each frame has a time that is a little wrong."""
    rng = random.Random(len(frames))
    late = [(ts + rng.randrange(most_us), frame, size) for ts, frame, size in frames]
    return [sorted(late, key=lambda one: one[0])]


def begun_before(frames):
    """The capture begins when a third of the traffic is over."""
    return [frames[len(frames) // 3 :]]


def from_the_last_connect_on(frames):
    """All others were there before."""
    opens = [at for at, (_, frame, _) in enumerate(frames) if frame[47] == 2]
    return [frames[opens[-1] :]]


def cut_frames(frames):
    return [[(ts, frame[:_SNAPLEN], size) for ts, frame, size in frames]]


def _proxied(frames, header):
    # The first bytes of each connection are a load balancer's; all that follows is farther on.
    ahead: dict[bytes, int] = {}
    out = []
    for ts, frame, size in frames:
        mine, head, data = frame[34:36], frame[:54], frame[54:]
        is_mine, sequence = _from_client(frame), int.from_bytes(frame[38:42], "big")
        sequence += ahead.get(mine, 0) if is_mine else 0
        if is_mine and data and mine not in ahead:
            ahead[mine] = len(header)
            data = header + data
        more = len(data) - len(frame[54:])
        length = (int.from_bytes(head[16:18], "big") + more).to_bytes(2, "big")
        place = (sequence & 0xFFFFFFFF).to_bytes(4, "big")
        head = head[:16] + length + head[18:38] + place + head[42:]
        out.append((ts, head + data, size + more))
    return [out]


def proxy_protocol_1(frames):
    return _proxied(frames, b"PROXY TCP4 198.51.100.7 192.0.2.1 56324 1883\r\n")


def proxy_protocol_2(frames):
    ends = bytes((198, 51, 100, 7, 192, 0, 2, 1)) + struct.pack(">HH", 56324, 1883)
    return _proxied(frames, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + ends)


def _set_back(frames, seconds):
    # The clock of the computer that captures, in the middle.
    half, us = len(frames) // 2, seconds * 1_000_000
    return [frames[:half] + [(ts - us, frame, size) for ts, frame, size in frames[half:]]]


_SET_BACK = {
    **{"clock_set_back_by_5_s": 5, "clock_set_back_by_30_s": 30},
    "clock_set_back_by_an_hour": 3600,
}
_TOLD = {  # what is told of the capture
    **dict.fromkeys(
        (mirrored, overlapping_files, same_file_twice, swapped_frames, wrong_times), ""
    ),
    **{proxy_protocol_1: "", proxy_protocol_2: "", both_sides_of_nat: "captured_twice"},
    **{only_from_clients: "one_direction", only_from_the_broker: "began_before one_direction"},
    **{begun_before: "began_before", cut_frames: "began_before bytes_missing"},
}
# Function, truth and what it is made of, by name.
DERIVED: dict[str, tuple] = {
    **{make.__name__: (make, Truth(told=told.split())) for make, told in _TOLD.items()},
    **{
        name + more: (partial(_set_back, seconds=seconds), Truth(told=["clock_set"]), source)
        for name, seconds in _SET_BACK.items()
        for more, source in (("", "plain_values"), ("_among_equals", "equal_values_at_intervals"))
    },
    "publishers_from_before": (
        from_the_last_connect_on,
        Truth(lost={("sub", "site/pub4"): [4], ("sub", "site/pub5"): [5]}, told=["began_before"]),
        "lost_by_a_new_subscriber",
    ),
    "collectors_from_before": (
        from_the_last_connect_on,
        Truth(told=["began_before"]),
        "readings_for_two_collectors",
    ),
}


def source_of(name):
    """The situation that a derived one is made of."""
    return DERIVED[name][2] if len(DERIVED[name]) > 2 else SOURCE


def write(name, folder):
    """Write the derived capture into `folder` from the recorded one there."""
    header, frames = read(folder / source_of(name) / "traffic.pcap")
    make = DERIVED[name][0]
    for number, some in enumerate(make(frames)):
        write_frames(folder / name / ("traffic-%d.pcap" % number), header, some)
