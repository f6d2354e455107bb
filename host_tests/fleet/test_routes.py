"""Plain values that come again and again: what was lost, and what came twice, long after."""

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, audit, decode, rows
from tools.standin import packets

_PUBACK = 0x40
_VALUES = [b"30", b"31", b"32", b"30", b"32", b"31"] * 40


def _played(capture, lost, twice, repeats, pause_ms):
    """All values pass from `pub` to `sub` but that at `lost`; that at `twice` comes twice, after
    its publisher has sent it again if it `repeats`."""
    pub, sub = capture.connection(b"pub", clean=False), capture.connection(b"sub")
    sub.subscribe(b"#", 1)
    got = 0
    for number, value in enumerate(_VALUES, 1):
        pub.publish(C2S, b"t", value, 1, number, after_ms=pause_ms)
        if number == twice and repeats:
            pub.publish(C2S, b"t", value, 1, number, dup=1, after_ms=500)
        pub.ack(S2C, _PUBACK, number)
        for _ in range((number != lost) + (number == twice)):
            got += 1
            sub.publish(S2C, b"t", value, 1, got)
            sub.ack(C2S, _PUBACK, got)
    sub.send(C2S, packets.pingreq(), after_ms=6000)


@pytest.mark.parametrize(
    ("repeats", "sure", "repeated"), [(True, "proved", 1), (False, "likely", 0)]
)
def test_lost_value_and_equal_one_that_came_twice_later_are_both_found(
    repeats, sure, repeated, tmp_path
):
    capture = Capture()
    _played(capture, 20, 206, repeats, pause_ms=10_000)
    tables = audit(decode(capture.write(tmp_path / "one.pcap"))[0])
    sent = tables["messages"].filter(_published(tables))["first_sent"].to_pylist()
    found = rows(tables["losses"], "client_id", "kind", "sure", "ts")
    assert [(*row[:3], sorted(sent).index(row[3]) + 1) for row in found] == [
        ("sub", "not_delivered", sure, 20)
    ]
    assert sum(tables["routes"]["repeated"].to_pylist()) == repeated
    assert sum(tables["routes"]["unmatched"].to_pylist()) == 1 - repeated


def _published(tables):
    messages = tables["messages"]
    return [side == "c2s" for side in messages["direction"].to_pylist()]
