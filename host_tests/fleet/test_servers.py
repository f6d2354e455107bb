"""What a bridge carries from one server to another; `traces/servers.txt` has sessions."""

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, rows
from host_tests.standin import packets

_ONE, _OTHER = (bytes((10, 0, 0, number)) for number in (1, 2))


def _found(capture):
    tables = capture.audit()
    found = rows(tables["findings"], "finding", "client_id")
    return found, rows(tables["violations"], "requirement", "by"), tables


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
