"""Who sends more than the other side takes: the receive maximum of CONNECT and CONNACK.

Shows for captures: MQTT-3.3.4-7 MQTT-3.3.4-9 MQTT-4.9.0-1 MQTT-4.9.0-2
"""

import random

import numpy as np
import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, connected, rows
from host_tests.standin import packets
from tools.fleet.audit.quota import at_once
from tools.fleet.audit.rows import FAR

_BREACH = {C2S: ("MQTT-3.3.4-7", "client"), S2C: ("MQTT-3.3.4-9", "broker")}
_PUBACK, _PUBREC, _PUBREL = 0x40, 0x50, 0x62


def _connect(capture, direction, takes, present=False, name=b"c1"):
    """A connection at level 5 on which the receiver of `direction` takes so many."""
    limit, kept = {"receive_maximum": takes}, {"session_expiry": 1000}
    said = (kept, limit) if direction == C2S else (kept | limit, {})
    return capture.connection(name, 5, clean=not present, present=present, said=said)


def _begun(direction, takes):
    capture = Capture()
    return capture, _connect(capture, direction, takes)


def _breaches(capture):
    tables = capture.audit()
    found = rows(tables["violations"], "requirement", "by", "packet_id", "sure")
    return [one for one in found if one[0] in ("MQTT-3.3.4-7", "MQTT-3.3.4-9")]


def _publish(talk, direction, *ids, qos=1):
    for number in ids:
        talk.publish(direction, b"t", b"%d" % number, qos, number)


@pytest.mark.parametrize("direction", [C2S, S2C])
def test_publish_beyond_the_receive_maximum_is_a_breach_of_its_sender(direction):
    capture, talk = _begun(direction, 2)
    _publish(talk, direction, 1, 2, 3)
    talk.ack(1 - direction, _PUBACK, 1, after_ms=500)
    _publish(talk, direction, 4)
    expected = [(*_BREACH[direction], number, "proved") for number in (3, 4)]
    assert _breaches(capture) == expected


def test_publishes_at_times_that_are_there_twice_are_not_counted_together():
    """The clock of the capture was set back, as by a time server."""
    capture, talk = _begun(S2C, 1)
    for number in range(1, 10):
        _publish(talk, S2C, number)
        talk.ack(C2S, _PUBACK, number, after_ms=400)
        if number == 5:
            capture.now -= 2_000_000
    assert not _breaches(capture)


@pytest.mark.parametrize("direction", [C2S, S2C])
def test_answers_give_back_what_a_publish_took(direction):
    """PUBACK, PUBCOMP, and a PUBREC that refuses; PUBREC and PUBREL alone do not."""
    capture, talk = _begun(direction, 2)
    _publish(talk, direction, 1)
    _publish(talk, direction, 2, qos=2)
    talk.ack(1 - direction, _PUBACK, 1, after_ms=500)
    _publish(talk, direction, 3, qos=2)
    talk.send(1 - direction, packets.pubrec(3, 0x97), after_ms=500)
    talk.release(direction, 2)
    _publish(talk, direction, 4, 5)
    assert _breaches(capture) == []
    _publish(talk, direction, 6)
    assert _breaches(capture) == [(*_BREACH[direction], 6, "proved")]


def test_qos_2_counts_until_pubcomp():
    capture, talk = _begun(S2C, 1)
    _publish(talk, S2C, 1, qos=2)
    talk.ack(C2S, _PUBREC, 1)
    talk.ack(S2C, _PUBREL, 1)
    _publish(talk, S2C, 2)
    assert _breaches(capture) == [(*_BREACH[S2C], 2, "proved")]


def test_answer_recorded_shortly_behind_may_have_come_before():
    capture, talk = _begun(S2C, 1)
    _publish(talk, S2C, 1, 2)
    talk.ack(C2S, _PUBACK, 1, after_ms=50)
    assert _breaches(capture) == []


def test_each_connection_begins_with_the_whole_of_it():
    capture, talk = _begun(S2C, 2)
    _publish(talk, S2C, 1, 2)
    talk.reset()
    talk = _connect(capture, S2C, 2, present=True)
    for number in (1, 2):
        talk.publish(S2C, b"t", b"%d" % number, 1, number, dup=1)
    assert _breaches(capture) == []
    _publish(talk, S2C, 3)
    assert _breaches(capture) == [(*_BREACH[S2C], 3, "proved")]


def test_nothing_is_said_behind_missing_bytes():
    capture, talk = _begun(S2C, 1)
    _publish(talk, S2C, 1)
    frames = len(capture.frames)
    talk.ack(C2S, _PUBACK, 1, after_ms=500)
    del capture.frames[frames:]
    talk.send(C2S, b"\xc0\0", after_ms=500)
    _publish(talk, S2C, 2)
    assert _breaches(capture) == []


def test_both_sides_are_in_the_table_of_connections():
    capture = Capture()
    _connect(capture, S2C, 3)
    capture.connection(b"old")
    tables = capture.audit()
    names = ("client_id", "client_receive_max", "server_receive_max")
    assert sorted(rows(tables["connections"], *names)) == [("c1", 3, 65535), ("old", None, None)]


@pytest.mark.parametrize("takes", [1, 2, 3])
def test_message_that_cannot_come_is_explained_by_a_full_window(takes):
    capture, publisher = connected(b"pub")
    subscriber = _connect(capture, S2C, takes, name=b"sub")
    subscriber.subscribe(b"t")
    for number in (1, 2, 3):
        publisher.exchange(C2S, b"t", b"%d" % number, number)
        if number < 3:
            subscriber.publish(S2C, b"t", b"%d" % number, 1, number)
        if number < 2 < takes:
            subscriber.ack(C2S, _PUBACK, number)
    subscriber.ping(10_000)
    losses = capture.audit()["losses"]
    ((kind, sure, why),) = rows(losses, "kind", "sure", "evidence")
    assert (kind, sure) == ("unexplained", "not_knowable")
    assert ("has to wait" in why) == (takes < 3)


@pytest.mark.parametrize("direction", [C2S, S2C])
def test_of_what_has_one_time_its_order_tells_how_much_was_under_way(direction):
    """Where frames have wrong times, several get the same one."""
    capture, talk = _begun(direction, 1)
    for number in (1, 2):
        talk.publish(direction, b"t", b"1", 1, number, after_ms=0)
        talk.ack(1 - direction, _PUBACK, number, after_ms=0)
    assert _breaches(capture) == []
    for number in (3, 4):
        talk.publish(direction, b"t", b"1", 1, number, after_ms=0)
    for number in (3, 4):
        talk.ack(1 - direction, _PUBACK, number, after_ms=0)
    assert _breaches(capture) == [(*_BREACH[direction], 4, "proved")]


def test_at_once_counts_what_has_begun_and_not_ended():
    rng = random.Random(3)
    for _ in range(50):
        count = rng.randint(0, 30)
        who = np.array([rng.randrange(3) for _ in range(count)], np.int64)
        begin = np.array([rng.randrange(20) for _ in range(count)], np.int64)
        lasting = np.array([rng.choice([1, 5, FAR]) for _ in range(count)], np.int64)
        end = np.where(lasting == FAR, FAR, begin + lasting)
        found = at_once(who, begin, end)
        for one in range(count):
            same = who == who[one]
            under_way = same & (begin <= begin[one]) & (end > begin[one])
            earlier = same & (begin < begin[one]) & (end > begin[one])
            assert earlier.sum() < found[one] <= under_way.sum()
