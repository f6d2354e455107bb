"""One capture with two servers: sessions, and messages that a bridge carries over."""

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, rows
from host_tests.standin import packets

_ONE, _OTHER = (bytes((10, 0, 0, number)) for number in (1, 2))


def _found(capture):
    tables = capture.audit()
    found = rows(tables["findings"], "finding", "client_id")
    return found, rows(tables["violations"], "requirement", "by"), tables


def _visit(capture, server, present):
    talk = capture.connection(b"gate", clean=False, present=present, server=server)
    talk.exchange(C2S, b"t", b"1", 1)
    talk.publish(C2S, b"t", b"2", 1, 2)
    talk.quiet(6000)
    return talk


def test_server_that_a_client_falls_back_to_need_not_know_its_session():
    """Nor has the client to send there what it owes the other one."""
    capture = Capture()
    for server, present in ((_ONE, False), (_OTHER, False), (_ONE, True), (_OTHER, True)):
        _visit(capture, server, present).reset()
    findings, violations, tables = _found(capture)
    assert (findings, violations) == ([], [])
    assert sorted(tables["connections"]["session"].to_pylist()) == [0, 1, 2, 3]


def test_session_goes_on_through_another_address_of_the_same_server():
    capture = Capture()
    for server, present in ((_ONE, False), (_OTHER, True)):
        capture.connection(b"gate", clean=False, present=present, server=server).bye()
    findings, violations, tables = _found(capture)
    assert (findings, violations) == ([], [])
    assert tables["connections"]["session"].to_pylist() == [0, 0]


@pytest.mark.parametrize(
    ("server", "has_asked", "found"), [(_ONE, True, 1), (_OTHER, True, 0), (_ONE, False, 0)]
)
def test_the_server_that_kept_a_session_may_not_forget_it(server, has_asked, found):
    """Were there nothing in it, nobody would miss it."""
    capture = Capture()
    for place in (_ONE, server):
        talk = capture.connection(b"gate", clean=False, server=place)
        if has_asked:
            talk.subscribe(b"#")
        talk.reset()
    assert _found(capture)[0] == [("session_not_kept", "gate")] * found


@pytest.mark.parametrize(("qos", "is_answered", "found"), [(1, 0, 0), (2, 0, 0), (2, 1, 1)])
def test_of_a_publisher_there_is_only_the_id_at_qos_2_to_keep(qos, is_answered, found):
    """What it had no answer to the broker may never have got; RabbitMQ keeps no such session."""
    capture = Capture()
    for _ in range(2):
        talk = capture.connection(b"dev", clean=False)
        talk.publish(C2S, b"t", b"1", qos, 1)
        if is_answered:
            talk.ack(S2C, 0x50, 1)
        talk.reset()
    findings = _found(capture)[0]
    assert findings == [("session_not_kept", "dev")] * found


def _subscriber(capture, name, server):
    talk = capture.connection(name, server=server)
    talk.subscribe(b"#")
    return talk


def _bridge(capture, server):
    talk = capture.middle(b"bridge", server=server).open()
    talk.send(C2S, packets.connect(b"bridge", level=4).replace(b"MQTT\x04", b"MQTT\x84"))
    talk.send(S2C, packets.connack())
    return talk


def _quiet(*talks):
    for place, talk in enumerate(talks):
        talk.ping(1 if place else 10_000)


def _losses(tables):
    return rows(tables["losses"], "client_id", "published_by", "kind", "sure")


def _bridged(capture, payloads, lost=None, is_both_ways=False):
    """A device at one server; a bridge publishes the same at the other."""
    device, bridge = capture.connection(b"dev", server=_OTHER), _bridge(capture, _ONE)
    if is_both_ways:
        bridge.subscribe(b"t", 1)
    south, north = _subscriber(capture, b"south", _OTHER), _subscriber(capture, b"north", _ONE)
    for number, payload in enumerate(payloads, 1):
        device.exchange(C2S, b"t", payload, number, after_ms=1500)
        # Now one is faster, now the other.
        ways = [(south,), (bridge, north)][:: 1 if number % 3 else -1]
        for talk in [talk for way in ways for talk in way]:
            if (talk, number) != (north, lost):
                talk.exchange(C2S if talk is bridge else S2C, b"t", payload, number, after_ms=80)
    _quiet(device, bridge, south, north)


@pytest.mark.parametrize("payloads", [[b"%d of 20" % n for n in range(20)], [b"30", b"31"] * 9])
@pytest.mark.parametrize("is_both_ways", [False, True])
def test_what_a_bridge_publishes_again_is_no_message_of_its_own(payloads, is_both_ways):
    """Nor one that it waits for, when it has subscribed, too."""
    capture = Capture()
    _bridged(capture, payloads, is_both_ways=is_both_ways)
    findings, violations, tables = _found(capture)
    assert (_losses(tables), findings, violations) == ([], [], [])


def test_what_is_lost_behind_a_bridge_is_lost_by_it():
    capture = Capture()
    _bridged(capture, [b"%d of 20" % n for n in range(20)], lost=9)
    losses = _losses(_found(capture)[2])
    assert losses == [("north", "bridge", "not_delivered", "proved")]


@pytest.mark.parametrize("is_one_broker", [True, False])
def test_another_address_may_be_another_broker(is_one_broker):
    """What comes through tells that it is not."""
    capture = Capture()
    device = capture.connection(b"dev", server=_OTHER)
    subscriber = _subscriber(capture, b"s", _ONE)
    for number in range(1, 6):
        device.exchange(C2S, b"t", b"%d of 5" % number, number, after_ms=1500)
        if is_one_broker and number != 3:
            subscriber.exchange(S2C, b"t", b"%d of 5" % number, number)
    _quiet(device, subscriber)
    tables = _found(capture)[2]
    if is_one_broker:
        assert _losses(tables) == [("s", "dev", "not_delivered", "proved")]
    else:
        assert _losses(tables) == [("s", "dev", "unexplained", "not_knowable")] * 5
        assert all("another broker" in one for one in tables["losses"]["evidence"].to_pylist())
