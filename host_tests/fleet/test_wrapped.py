"""What is not plain MQTT from its first byte on: WebSocket, TLS, the middle of a stream.

Every byte of a stream is either in a packet or in an event that says why not.
"""

import random

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, begun, connected, decode, rows, types
from host_tests.fleet.simulate import tcp
from host_tests.standin import packets

_ASK = (
    b"GET /mqtt HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
)
_ANSWER = (
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)
_COLUMNS = ("direction", "packet_type", "topic", "packet_id", "payload_bytes", "payload_hash")


def _frame(rng, opcode, is_last, payload, direction):
    size = len(payload)
    mask = rng.randbytes(4) if direction == C2S else b""
    if size < 126:
        length = bytes((size,))
    else:
        length = b"\x7e" + size.to_bytes(2) if size < 65536 else b"\x7f" + size.to_bytes(8)
    head = bytes((is_last << 7 | opcode, length[0] | (128 if mask else 0))) + length[1:] + mask
    if mask:
        payload = bytes(byte ^ mask[at & 3] for at, byte in enumerate(payload))
    return head + payload


def _frames(rng, data, direction):
    # Cut anywhere, messages in fragments, pings and pongs in between.
    out, pos = [], 0
    while pos < len(data):
        size = rng.choice([1, 2, 50, 125, 126, 300, 70_000])
        message, pos = data[pos : pos + size], pos + size
        cuts = sorted(rng.randrange(len(message) + 1) for _ in range(rng.randrange(3)))
        for place, begin in enumerate([0, *cuts]):
            end = [*cuts, len(message)][place]
            out.append((0 if place else 2, place == len(cuts), message[begin:end]))
            if rng.random() < 0.2:
                out.append((rng.choice((9, 10)), True, rng.randbytes(4)))
    return b"".join(_frame(rng, *one, direction) for one in out)


def _packets(rng, level=4):
    none = packets.no_properties(level)
    there = [
        packets.connect(b"web", level=level),
        packets.subscribe(1, (b"a/#", 1), properties=none),
    ]
    back = [packets.connack(properties=none), packets.suback(1, 1, properties=none)]
    for number in range(1, 20):
        payload = rng.randbytes(rng.choice([0, 1, 30, 130, 3000, 80_000]))
        there.append(packets.publish(b"a/%d" % number, payload, 1, number, properties=none))
        back.append(packets.puback(number))
    return there, back


def _send(capture, talk, rng, streams, most=4000):
    # Both directions by turns, in segments of any size.
    left = list(streams)
    while any(left):
        direction = rng.choice([d for d in (C2S, S2C) if left[d]])
        size = rng.randint(1, most)
        talk.segment(direction, left[direction][:size])
        left[direction] = left[direction][size:]
    return capture


def _rows(events):
    found = [row for row in rows(events, *_COLUMNS) if not row[1].startswith("TCP")]
    return sorted(found, key=lambda row: row[0])


def _kinds(events):
    names = ("GAP", "MALFORMED", "NOT_MQTT", "INCOMPLETE", "UNREAD", "ENCRYPTED")
    found = rows(events, "direction", "packet_type", "payload_bytes")
    return [row for row in found if row[1] in names]


@pytest.mark.parametrize("seed", range(8))
def test_websocket_when_framed_and_cut_in_any_way_gives_what_plain_mqtt_gives(seed, tmp_path):
    rng = random.Random(seed)
    there, back = (b"".join(made) for made in _packets(rng))
    plain, web = Capture(), Capture()
    talk = plain.middle(b"web").open()
    _send(plain, talk, rng, (there, back))
    talk = web.middle(b"web").open()
    streams = _ASK + _frames(rng, there, C2S), _ANSWER + _frames(rng, back, S2C)
    _send(web, talk, rng, streams, rng.choice([3, 200, 9000]))
    events, _ = decode(web.write(tmp_path / "web.pcap"), chunk_bytes=rng.choice([5_000, 1 << 24]))
    assert _rows(events) == _rows(decode(plain.write(tmp_path / "plain.pcap"))[0])
    assert "web" in events["client_id"].to_pylist()


def test_websocket_begun_before_the_capture_is_read_from_its_next_frame_on():
    rng = random.Random(1)
    capture, talk = begun(b"web")
    for number in range(1, 6):
        packet = packets.publish(b"a/b", b"x" * 200, 1, number)
        frame = _frame(rng, 2, True, packet, C2S)
        talk.segment(C2S, frame[100:] if number == 1 else frame)
        talk.segment(S2C, _frame(rng, 2, True, packets.puback(number), S2C))
    assert types(capture.events()) == {"PUBLISH": 4, "PUBACK": 5}


@pytest.mark.parametrize("direction", [C2S, S2C])
def test_websocket_frame_of_which_little_was_captured_hides_nothing_behind_it(direction):
    """The first thing that was captured of a connection, cut short anywhere."""
    packet = packets.publish(b"a/b", bytes(20), 1, 1)
    frame = _frame(random.Random(1), 2, True, packet, direction)
    for size in range(1, len(frame)):
        capture = Capture()
        talk = capture.middle(b"web")
        talk.segment(direction, frame[:size])
        talk.segment(direction, frame[size:])
        talk.segment(direction, frame)
        events = capture.events()
        assert types(events)["PUBLISH"] >= 1, size


def test_websocket_when_bytes_are_missing_goes_on_behind_them():
    rng = random.Random(2)
    capture, talk = begun(b"web")
    talk.open()
    talk.segment(C2S, _ASK)
    talk.segment(C2S, _frame(rng, 2, True, packets.connect(b"web", level=4), C2S))
    for number in range(1, 9):
        packet = packets.publish(b"a/b", b"x" * 50, 1, number)
        frame = _frame(rng, 2, True, packet, C2S)
        if number == 4:
            talk.wire.seq[C2S] += len(frame)  # never captured
        else:
            talk.segment(C2S, frame)
    events = capture.events()
    assert types(events) == {"CONNECT": 1, "PUBLISH": 7}
    assert [kind for _, kind, _ in _kinds(events)] == ["GAP"]


def test_compressed_frames_are_said_where_they_begin():
    """With all bytes behind that were seen of the stream."""
    capture, talk = begun(b"web")
    talk.segment(C2S, b"", tcp.SYN)
    talk.segment(C2S, _ASK)
    plain = _frame(random.Random(1), 2, True, packets.connect(b"web", level=4), C2S)
    talk.segment(C2S, plain)
    packed = bytes((plain[0] | 0x40,)) + plain[1:]
    talk.segment(C2S, packed)
    since = capture.now
    talk.segment(C2S, packed[:9], after_ms=1000)
    found = {
        one: more for one, *more in rows(capture.events(), "packet_type", "payload_bytes", "ts")
    }
    assert sorted(found) == ["CONNECT", "NOT_MQTT", "TCP_OPEN"]
    size, moment = found["NOT_MQTT"]
    assert (size, int(moment.timestamp() * 1_000_000 + 0.5)) == (len(packed) + 9, since)


def test_plain_http_is_said_to_be_no_mqtt():
    capture, talk = begun()
    talk.open()
    talk.segment(C2S, b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n")
    talk.segment(S2C, b"HTTP/1.1 404 Not Found\r\n\r\n")
    assert sorted(kind for _, kind, _ in _kinds(capture.events())) == ["NOT_MQTT", "NOT_MQTT"]


def _record(kind, payload):
    return bytes((kind, 3, 3)) + len(payload).to_bytes(2, "big") + payload


@pytest.mark.parametrize("is_opened", [True, False])
def test_tls_is_said_to_be_encrypted_once_for_each_direction(is_opened):
    rng = random.Random(3)
    capture, talk = begun()
    if is_opened:
        talk.open()
        talk.segment(C2S, _record(0x16, rng.randbytes(200)))
        talk.segment(S2C, _record(0x16, rng.randbytes(900)))
    else:
        talk.segment(C2S, rng.randbytes(300))  # the middle of a record
    for _ in range(5):
        talk.segment(C2S, _record(0x17, rng.randbytes(80)))
        talk.segment(S2C, _record(0x17, rng.randbytes(40)))
    events = capture.events()
    assert not types(events)
    found = [(direction, kind) for direction, kind, _ in _kinds(events)]
    assert sorted(found) == [("c2s", "ENCRYPTED"), ("s2c", "ENCRYPTED")]


def test_bytes_before_the_first_packet_of_a_connection_begun_earlier_are_counted():
    capture, talk = begun()
    cut = packets.publish(b"a/b", bytes(range(200)))
    talk.segment(C2S, cut[80:])
    talk.publish(C2S, b"a/b", b"whole")
    events = capture.events()
    assert types(events) == {"PUBLISH": 1}
    assert _kinds(events) == [("c2s", "UNREAD", len(cut) - 80)]


def test_bytes_of_a_connection_that_never_shows_a_packet_are_counted():
    capture, talk = begun()
    talk.segment(C2S, bytes(60))
    talk.segment(C2S, bytes(40))
    assert _kinds(capture.events()) == [("c2s", "UNREAD", 100)]


@pytest.mark.parametrize(
    ("level", "codes", "wanted"), [(5, b"\x00\x11\x87", '{"codes":[0,17,135]}'), (4, b"", None)]
)
def test_unsuback_of_level_5_shows_its_codes(level, codes, wanted):
    capture, talk = connected(level=level)
    body = b"\x00\x07" + (b"\x00" + codes if level == 5 else b"")
    talk.send(S2C, b"\xb0" + bytes((len(body),)) + body)
    found = dict(rows(capture.events(), "packet_type", "detail"))
    assert found["UNSUBACK"] == wanted
