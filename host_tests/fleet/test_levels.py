"""The level of connections whose CONNECT was not captured, from their packets."""

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, audit, begun, decode
from host_tests.standin import packets


def _level(path, level, payloads, after=()):
    """-> (level of the connection, of its messages, bytes of their payloads)."""
    capture, talk = begun(level=level)
    for number, payload in enumerate(payloads, 1):
        talk.exchange(C2S, b"t/x", payload, number)
    for packet in after:
        talk.send(S2C, packet)
    events, _ = decode(capture.write(path))
    assert set(events["level"].to_pylist()) == {None}
    found = audit(events)
    messages = found["messages"]
    return (
        found["connections"]["level"].to_pylist(),
        messages["level"].to_pylist(),
        messages["payload_bytes"].to_pylist(),
    )


TEXT, BINARY = (b"30", b"31", b"30"), (b"\0one", b"\0two", b"\0three")


@pytest.mark.parametrize("level", [3, 4])
def test_payload_that_cannot_stand_behind_properties_is_below_level_5(tmp_path, level):
    found = _level(tmp_path / "one.pcap", level, TEXT)
    assert found == ([4], [4, 4, 4], [2, 2, 2])


def test_publishes_that_can_all_be_level_5_are(tmp_path):
    assert _level(tmp_path / "one.pcap", 5, TEXT) == ([5], [5, 5, 5], [2, 2, 2])


def test_binary_payloads_beside_one_that_is_none_of_level_5_are_whole(tmp_path):
    found = _level(tmp_path / "one.pcap", 4, (*BINARY, b"text"))
    assert found == ([4], [4] * 4, [4, 4, 6, 4])


def test_empty_payload_below_level_5_has_no_room_for_properties(tmp_path):
    assert _level(tmp_path / "one.pcap", 4, (b"",)) == ([4], [4], [0])


def test_two_publishes_that_may_be_of_both_tell_nothing(tmp_path):
    assert _level(tmp_path / "one.pcap", 4, BINARY[:2]) == ([None], [None, None], [4, 4])


def test_reason_code_in_an_answer_is_level_5(tmp_path):
    found = _level(tmp_path / "one.pcap", 5, TEXT[:1], [b"\x40\x04\0\1\x10\0"])
    assert found == ([5], [5], [2])


def test_level_of_a_message_with_properties_stays_open_as_they_were_not_read():
    capture, talk = begun(level=5)
    for number in (1, 2, 3):
        properties = b"\0" if number == 2 else b"\5\2\0\0\0\x3c"  # an expiry of 60 s
        packet = packets.publish(b"t/x", b"%d" % number, 1, number, properties=properties)
        talk.send(C2S, packet)
    events = capture.events()
    messages = audit(events)["messages"]
    assert messages["level"].to_pylist() == [None, 5, None]
    assert messages["payload_bytes"].to_pylist() == [1, 1, 1]


def test_payload_hash_is_the_same_with_and_without_the_connect(tmp_path):
    hashes = []
    for begin in ("connection", "middle"):
        capture = Capture()
        talk = getattr(capture, begin)(level=5)
        for number in (1, 2, 3):
            talk.publish(C2S, b"t/x", b"%d" % number, 1, number)
        events, _ = decode(capture.write(tmp_path / (begin + ".pcap")))
        hashes.append(audit(events)["messages"]["payload_hash"].to_pylist())
    assert hashes[0] == hashes[1]
