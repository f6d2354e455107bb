"""What was lost, and what came twice: among values that come again, and where captures begin."""

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, connected, lost_of, routed, rows
from host_tests.fleet.simulate.fleet import reading
from tools.fleet.audit.judge import judge
from tools.fleet.audit.routes import routes
from tools.fleet.report.causes import explained

_PUBACK = 0x40
_VALUES = [b"30", b"31", b"32", b"30", b"32", b"31"] * 40


def test_plain_message_tells_how_long_it_was_under_way():
    capture, pub, sub = connected(b"pub", b"sub")
    sub.subscribe(b"t", 0)
    for number in range(3):
        pub.publish(C2S, b"t", b"%d of 3" % number, after_ms=1000)
        sub.publish(S2C, b"t", b"%d of 3" % number, after_ms=20 + number)
    found = judge(capture.events())
    told = routes(found["messages"], found["subscriptions"])["latency"]
    assert rows(told, "device", "latency_ms") == [("pub", 20), ("pub", 21), ("pub", 22)]


@pytest.mark.parametrize(("qos", "cause"), [(0, "not_kept"), (1, "queue_full")])
def test_loss_of_an_absent_subscriber_has_the_cause_of_its_qos(qos, cause):
    capture, pub, sub = routed(clean=False)
    for number in range(1, 8):
        pub.exchange(C2S, b"t", b"message %d" % number, number, qos)
        if number == 4:
            sub = capture.connection(b"sub", clean=False, present=True)
        else:
            sub.exchange(S2C, b"t", b"message %d" % number, number, qos)
        if number == 3:
            sub.bye()
    sub.quiet()
    found = capture.audit()
    told = explained(found["losses"], found["connections"], found["findings"])["losses"]
    assert rows(told, "client_id", "cause") == [("sub", cause)]


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
            sub.exchange(S2C, b"t", value, got)
    sub.quiet(6000)


@pytest.mark.parametrize(
    ("twice", "repeats", "sure", "repeated"),
    [
        (206, True, "proved", 1),
        (206, False, "likely", 0),
        (32, True, "likely", 1),  # two minutes behind: the lost one may be late
    ],
)
def test_lost_value_and_equal_one_that_came_twice_later_are_both_found(
    twice, repeats, sure, repeated
):
    capture = Capture()
    _played(capture, 20, twice, repeats, pause_ms=10_000)
    tables = capture.audit()
    found = lost_of(tables, "client_id", "kind", "sure")
    assert found == [("sub", "not_delivered", sure, 20)]
    assert sum(tables["routes"]["repeated"].to_pylist()) == repeated
    assert sum(tables["routes"]["unmatched"].to_pylist()) == 1 - repeated


@pytest.mark.parametrize("is_reading", [True, False])
@pytest.mark.parametrize(
    ("is_whole", "twice", "named"),
    [
        (True, (3,), [3]),
        (True, (1, 2, 3, 4, 5), [1, 2, 3, 4, 5]),
        (False, (3,), [3]),
        (False, (1, 2, 3, 4, 5), []),  # two filters that match
        (False, (2, 3, 4), []),  # for a while
    ],
)
def test_copies_at_qos_2_may_be_of_filters_from_before_the_capture(
    is_whole, twice, named, is_reading
):
    capture, pub = connected(b"dev")
    if is_whole:
        sub = capture.connection(b"sub")
        sub.subscribe(b"#", 2)
    else:
        sub = capture.middle(b"sub")
        sub.quiet(1)
    capture.now += 10_000_000
    got = 0
    for number in range(1, 6):
        payload = b"number %d of five" % number
        if is_reading:
            payload = reading(257, 1, number, number, 1, b"dev", (2100, 3300))
        pub.exchange(C2S, b"t", payload, number, qos=2)
        for _ in range(1 + (number in twice)):
            got += 1
            sub.exchange(S2C, b"t", payload, got, qos=2)
    tables = capture.audit()
    found = rows(tables["violations"], "requirement", "sure")
    sure = "proved" if is_reading else "likely"
    assert found == [("MQTT-4.3.3-10", sure)] * len(named)
    unexplained = [row for row in rows(tables["findings"], "finding", "count") if "copy" in row[0]]
    left = len(twice) - len(named)
    assert unexplained == [("unexplained_copy", left)] * (left > 0)


def test_what_comes_twice_at_qos_2_where_the_capture_begins_is_not_called_allowed():
    """It may have been published before, and once more: nobody knows."""
    capture = Capture()
    pub, sub = capture.middle(b"pub"), capture.middle(b"sub")
    payload = reading(257, 1, 7, 7, 1, b"dev", (2100, 3300))
    for talk, side, packet_id in ((pub, C2S, 1), (sub, S2C, 1), (sub, S2C, 2)):
        talk.exchange(side, b"t", payload, packet_id, qos=2)
    tables = capture.audit()
    assert not tables["violations"].num_rows
    found = rows(tables["findings"], "finding", "sure")
    assert ("unexplained_copy", "not_knowable") in found
    counted = rows(tables["routes"], "repeated", "unmatched", "duplicates")
    assert counted == [(0, 1, 0)]
