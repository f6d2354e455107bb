"""Topic aliases of level 5 that are given, or given anew, in bytes that the capture missed."""

import pytest

from host_tests.fleet.captures import C2S, S2C, audit, connected, rows

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
