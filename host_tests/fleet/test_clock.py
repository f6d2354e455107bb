"""The clock of a capture that is set while it runs accuses nobody."""

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, audit, connected, decode_all, rows
from host_tests.fleet.simulate import tcp
from host_tests.standin import packets

_VALUES = [b"30", b"31", b"30", b"30", b"32", b"31"] * 3


def _found(capture):
    """-> (violations, losses, findings about clients and brokers, those about the capture)."""
    tables = capture.audit()
    findings = rows(tables["findings"], "finding", "about", "sure", "detail")
    known = [one for one in findings if one[1] != "capture" and one[2] != "not_knowable"]
    told = [one[:1] + one[2:] for one in findings if one[1] == "capture"]
    violations = rows(tables["violations"], "requirement", "client_id")
    return violations, rows(tables["losses"], "client_id", "kind"), known, told


def _both(publisher, subscriber, packet_id, payload, set_s=0):
    """A message and its delivery; the clock is set between the two."""
    times = {"after_ms": 5000, "answer_ms": 1 + set_s * 1000}
    publisher.exchange(C2S, b"t", payload, packet_id, **times)
    subscriber.exchange(S2C, b"t", payload, packet_id)


def _traffic(capture, set_s):
    publisher, subscriber = (capture.connection(name, clean=False) for name in (b"pub", b"sub"))
    subscriber.subscribe(b"#")
    for number, payload in enumerate(_VALUES, 1):
        _both(publisher, subscriber, number, payload, set_s if number % 7 == 0 else 0)
    return publisher, subscriber


@pytest.mark.parametrize("set_s", [-2, -30, -3600, 3600])
def test_clock_that_is_set_is_told_and_nothing_else_is(set_s):
    capture = Capture()
    for talk in _traffic(capture, set_s):
        talk.ping(10_000)
    violations, losses, findings, told = _found(capture)
    assert (violations, losses, findings) == ([], [], [])
    assert {one[:2] for one in told} == {("clock_set", "proved" if set_s < 0 else "not_knowable")}


def test_hour_of_which_the_file_is_lost_is_no_clock_that_was_set():
    capture, talk = connected(b"dev", keep_alive_s=60)
    talk.ping()
    kept = len(capture.frames)
    for _ in range(60):
        talk.ping(60_000)
    del capture.frames[kept:]
    talk.ping(60_000)
    told = _found(capture)[3]
    assert [one[0] for one in told] == ["bytes_missing"]


def test_clock_set_back_tells_by_how_much():
    capture, talk = connected(b"dev")
    talk.send(C2S, b"\xc0\0")
    capture.now -= 90_000_000
    talk.send(S2C, b"\xd0\0")
    assert _found(capture)[3] == [("clock_set", "proved", "set back by 90.0 s")]


@pytest.mark.parametrize("is_cut", [False, True])
def test_connections_of_a_file_whose_clock_is_set_back_are_in_its_order(is_cut):
    """By the times alone the session would seem to be forgotten."""
    capture, first = connected(b"dev", clean=False)
    first.segment(C2S, packets.pingreq())
    if is_cut:
        del capture.frames[-1]
    first.bye()
    capture.now -= 3600_000_000
    capture.connection(b"dev", clean=False, present=True).bye()
    assert _found(capture)[:3] == ([], [], [])


def _said(publisher, payloads, *subscribers, first=1, qos=1):
    for number, payload in enumerate(payloads, first):
        publisher.exchange(C2S, b"t", payload, number, qos, after_ms=1800)
        for talk in subscribers:
            talk.exchange(S2C, b"t", payload, number, qos)


@pytest.mark.parametrize("qos", [0, 1])
def test_order_of_equal_payloads_is_not_known_in_times_that_are_there_twice(qos):
    """MQTT-4.6.0-5"""
    capture, publisher, subscriber = connected(b"pub", b"sub", keep_alive_s=0)
    subscriber.subscribe(b"#", qos)
    for first in (1, 30):
        _said(publisher, _VALUES, subscriber, first=first, qos=qos)
        capture.now -= 20_000_000
    subscriber.quiet(30_000)
    assert _found(capture)[:3] == ([], [], [])


def test_subscriber_who_was_away_when_the_clock_was_set_back_missed_nothing():
    """By the times alone it was there."""
    capture, publisher, subscriber = connected(b"pub", b"sub")
    subscriber.subscribe(b"#", 1)
    numbers = [b"%d" % number for number in range(40)]
    _said(publisher, numbers[:15], subscriber)
    subscriber.bye()
    _said(publisher, numbers[15:17], first=16)
    capture.now -= 20_000_000
    _said(publisher, numbers[17:20], first=18)
    again = capture.connection(b"sub")
    again.subscribe(b"#", 1)
    _said(publisher, numbers[20:], again, first=21)
    again.quiet()
    assert _found(capture)[:3] == ([], [], [])


def test_order_is_not_known_where_all_connections_began_anew_as_the_clock_was_set_back():
    """The broker was restarted, another client was there at the moment itself."""
    capture, other = connected(b"other", keep_alive_s=0)
    for payloads in (_VALUES, _VALUES[::-1]):
        publisher, subscriber = (capture.connection(one, keep_alive_s=0) for one in (b"p", b"s"))
        subscriber.subscribe(b"#", 0)
        _said(publisher, payloads, subscriber, qos=0)
        for talk in (publisher, subscriber):
            talk.bye()
        other.ping()
        capture.now -= 20_000_000
        other.ping()
    assert _found(capture)[:3] == ([], [], [])


def test_loss_long_after_the_clock_was_set_is_one():
    capture = Capture()
    publisher, subscriber = _traffic(capture, -30)
    capture.now += 100_000_000
    for number, payload in ((101, b"a"), (102, b"b"), (103, b"c")):
        publisher.exchange(C2S, b"t", payload, number, after_ms=5000)
        if payload != b"b":
            subscriber.exchange(S2C, b"t", payload, number)
    subscriber.quiet(10_000)
    assert _found(capture)[1] == [("sub", "not_delivered")]


def _silence(silent_s):
    capture, talk = connected(b"dev", keep_alive_s=10)
    for after_ms in (1, silent_s * 1000):
        talk.ping(after_ms)
    return capture, talk


@pytest.mark.parametrize(("silent_s", "broken"), [(20, 1), (30, 0)])
def test_silence_that_a_broker_bears_for_longer_than_it_may_is_not_known(silent_s, broken):
    """31-2.2-KA"""
    capture, _ = _silence(silent_s)
    violations, _, _, told = _found(capture)
    assert violations == [("31-2.2-KA", "dev")] * broken
    assert len(told) == 1 - broken


def test_silence_in_which_the_broker_spoke_was_one():
    """31-2.2-KA"""
    capture, talk = _silence(1)
    for _ in range(8):
        talk.publish(S2C, b"t", b"1", after_ms=10_000)
    talk.ping()
    assert _found(capture)[0] == [("31-2.2-KA", "dev")]


@pytest.mark.parametrize("seen", ["client", "until_then"])
def test_step_forward_is_told_where_the_broker_was_not_seen_to_go_on(seen):
    """One direction only, and a capture that ends there."""
    capture, talk = _silence(3600)
    if seen == "until_then":
        del capture.frames[-1]
    else:
        talk.send(C2S, b"\xc0\0")
        of_client = [one for one in capture.frames if one[52:54] == b"\x07\x5b"]
        capture.frames[1:] = of_client
    violations, _, _, told = _found(capture)
    assert violations == []
    assert "clock_set" in {one[0] for one in told}


def test_client_whom_the_broker_had_left_was_silent():
    """31-2.2-KA"""
    capture, talk = _silence(1)
    talk.segment(S2C, b"", tcp.FIN | tcp.ACK, after_ms=15_000)
    talk.quiet(60_000)
    talk.segment(S2C, b"", tcp.RST | tcp.ACK)
    assert _found(capture)[0] == [("31-2.2-KA", "dev")]


@pytest.mark.parametrize("goodbye", [packets.disconnect(), b""])
def test_broker_that_closes_behind_its_client_had_not_closed_for_silence(goodbye):
    """31-2.2-KA"""
    capture, talk = connected(b"dev", keep_alive_s=10)
    for after_ms in (1, 3600_000, 1):
        talk.publish(C2S, b"t", b"1", after_ms=after_ms)
    talk.segment(C2S, goodbye, tcp.FIN | tcp.ACK)
    talk.segment(S2C, b"", tcp.FIN | tcp.ACK)
    violations, _, _, told = _found(capture)
    assert violations == []
    assert {one[:2] for one in told} == {("clock_set", "not_knowable")}


def test_connections_in_files_against_their_names_forget_no_session(tmp_path):
    paths = []
    for number, present in enumerate((False, True)):
        capture = Capture()
        capture.now -= number * 3600_000_000
        capture.ports += number
        capture.connection(b"dev", clean=False, present=present).reset()
        paths.append(capture.write(tmp_path / ("mqtt-%d.pcap" % number)))
    tables = audit(decode_all(paths)[0])
    assert tables["connections"].num_rows == 2
    assert not tables["findings"].num_rows
