"""What the capture missed of level 5: the CONNECT that tells it, and topic aliases that are given,
or given anew, in missing bytes.
"""

import pytest

from host_tests.fleet.captures import C2S, S2C, Capture, audit, begun, connected, rows


def _level(level, payloads, after=()):
    """-> (level of the connection, of its messages, bytes of their payloads)."""
    capture, talk = begun(level=level)
    for number, payload in enumerate(payloads, 1):
        talk.exchange(C2S, b"t/x", payload, number)
    for packet in after:
        talk.send(S2C, packet)
    events = capture.events()
    assert set(events["level"].to_pylist()) == {None}
    found = audit(events)
    levels = found["connections"]["level"], found["messages"]["level"]
    return tuple(one.to_pylist() for one in (*levels, found["messages"]["payload_bytes"]))


TEXT, BINARY = (b"30", b"31", b"30"), (b"\0one", b"\0two", b"\0three")


_TOLD = {  # level, payloads, what comes behind them, what is told
    "a payload that cannot stand behind properties is of level 3": (3, TEXT, (), (4, [2] * 3)),
    "or 4": (4, TEXT, (), (4, [2] * 3)),
    "payloads that can all be of level 5 are": (5, TEXT, (), (5, [2] * 3)),
    "binary ones beside one that is none": (4, (*BINARY, b"text"), (), (4, [4, 4, 6, 4])),
    "an empty one has no room for properties": (4, (b"",), (), (4, [0])),
    "two that may be of both tell nothing": (4, BINARY[:2], (), (None, [4, 4])),
    "a reason code in an answer": (5, TEXT[:1], [b"\x40\x04\0\1\x10\0"], (5, [2])),
}


@pytest.mark.parametrize("name", _TOLD)
def test_packets_tell_the_level_of_a_connection_without_its_connect(name):
    level, payloads, after, (told, sizes) = _TOLD[name]
    assert _level(level, payloads, after) == ([told], [told] * len(payloads), sizes)


def test_level_of_a_message_with_properties_stays_open_as_they_were_not_read():
    capture, talk = begun(level=5)
    for number in (1, 2, 3):
        more = {} if number == 2 else {"message_expiry": 60}
        talk.publish(C2S, b"t/x", b"%d" % number, 1, number, **more)
    messages = capture.audit()["messages"]
    assert messages["level"].to_pylist() == [None, 5, None]
    assert messages["payload_bytes"].to_pylist() == [1, 1, 1]


def test_payload_hash_is_the_same_with_and_without_the_connect():
    hashes = []
    for begin in ("connection", "middle"):
        capture = Capture()
        talk = getattr(capture, begin)(level=5)
        for number in (1, 2, 3):
            talk.publish(C2S, b"t/x", b"%d" % number, 1, number)
        hashes.append(capture.audit()["messages"]["payload_hash"].to_pylist())
    assert hashes[0] == hashes[1]


_TOPIC, _NEXT, _ELSE = b"site/hall/one", b"site/hall/two", b"site/else"


def _publish(talk, direction, topic, number, alias=None, after_ms=1):
    more = {"topic_alias": alias} if alias else {}
    payload = b"value number %d" % number
    talk.exchange(direction, topic, payload, number, after_ms=after_ms, **more)


def _traffic(side, given, missing):
    """Messages and deliveries, those of one `side` by an alias that is `given` a topic at these
    numbers, the last of them in frames that are `missing`."""
    capture, publisher, subscriber = connected(b"pub", b"sub", level=5)
    subscriber.subscribe(b"#")
    for number in range(1, 25):
        topic = _NEXT if number >= given[-1] else _TOPIC
        for talk, direction in ((publisher, C2S), (subscriber, S2C)):
            after_ms = 4000 if direction == C2S else 1
            frames = len(capture.frames)
            if direction == side and number >= given[0]:
                _publish(talk, direction, topic * (number in given), number, 1, after_ms)
            else:
                _publish(talk, direction, topic, number, None, after_ms)
            if missing and direction == side and number == given[-1]:
                del capture.frames[frames:]
        for talk, direction in ((publisher, C2S), (subscriber, S2C)):
            _publish(talk, direction, _ELSE, 100 + number)
    subscriber.quiet()
    return capture


@pytest.mark.parametrize("given", [(1, 6), (6,)])
@pytest.mark.parametrize("side", [C2S, S2C])
def test_alias_given_in_missing_bytes_loses_nothing(side, given):
    tables = _traffic(side, given, True).audit()
    assert not tables["losses"].num_rows
    assert not tables["violations"].num_rows
    assert {one for (one,) in rows(tables["findings"], "finding")} == {"bytes_missing"}


def test_alias_means_what_it_was_given_last():
    events = _traffic(S2C, (1, 6), False).events()
    packets_of = rows(events, "direction", "topic", "packet_type")
    found = [topic for side, topic, kind in packets_of if (side, kind) == ("s2c", "PUBLISH")]
    assert found[::2] == [_TOPIC.decode()] * 5 + [_NEXT.decode()] * 19
    assert not audit(events)["losses"].num_rows
