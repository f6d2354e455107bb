"""What subscribers get: those that were there before the capture, and filters with wildcards."""

import random

import pyarrow as pa
import pytest

from host_tests.fleet.captures import C2S, S2C, connected, lost_of
from tools.fleet.audit.spans import matched, that_match
from tools.fleet.mqtt import matches


def _pass_on(publisher, subscribers, count, values=1000, skips=()):
    """`skips`: (number of the message, number of a subscriber that does not get it)."""
    for number in range(1, count + 1):
        payload = b"%d of all" % (number % values)
        publisher.exchange(C2S, b"t/1", payload, number, after_ms=2000)
        for place, one in enumerate(subscribers):
            if (number, place) not in skips:
                one.exchange(S2C, b"t/1", payload, number)


def _lost(capture):
    """[(kind, sure, number of the message), …]"""
    tables = capture.audit()
    assert not tables["violations"].num_rows
    return lost_of(tables, "kind", "sure")


def _before(count=1):
    """-> (`Capture`, a publisher, subscribers that were there before)"""
    capture, publisher = connected(b"pub")
    return capture, publisher, [capture.middle(b"before%d" % n) for n in range(count)]


@pytest.mark.parametrize("values", [1000, 3, 1])
@pytest.mark.parametrize("others", [0, 1])
def test_message_that_a_subscriber_from_before_did_not_get_is_likely_lost(values, others):
    capture, publisher, subscribers = _before(1 + others)
    _pass_on(publisher, subscribers, 30, values, skips=[(20, 0)])
    assert _lost(capture) == [("not_delivered", "likely", 20)]


@pytest.mark.parametrize("skips", [[(1, 0)], [(30, 0)], [(n, 0) for n in range(1, 31, 4)]])
def test_subscriber_from_before_need_not_get_what_it_does_not_get_regularly(skips):
    """Before the first and behind the last delivery nobody knows of a subscription."""
    capture, publisher, subscribers = _before()
    _pass_on(publisher, subscribers, 30, skips=skips)
    assert _lost(capture) == []


@pytest.mark.parametrize("every", [2, 15])
def test_members_of_a_shared_subscription_from_before_miss_nothing(every):
    """Each message goes to one of them, be it now and then only to the second one."""
    capture, publisher, subscribers = _before(2)
    skips = [(n, 0 if n % every == 0 else 1) for n in range(1, 61)]
    _pass_on(publisher, subscribers, 60, skips=skips)
    assert _lost(capture) == []


def test_subscriber_from_before_may_take_no_larger_packets():
    capture, publisher, subscribers = _before()
    _pass_on(publisher, subscribers, 15)
    publisher.exchange(C2S, b"t/1", b"x" * 500, 100, after_ms=2000)
    _pass_on(publisher, subscribers, 15)
    assert _lost(capture) == []


def test_own_messages_of_a_bridge_from_before_do_not_come_back():
    capture, publisher, (bridge,) = _before()
    _pass_on(publisher, [bridge], 15)
    bridge.exchange(C2S, b"t/1", b"from afar", 900, after_ms=2000)
    _pass_on(publisher, [bridge], 15)
    assert _lost(capture) == []


def test_kept_messages_may_come_marked_to_a_subscriber_from_before():
    """Retain As Published, which its SUBSCRIBE would tell."""
    capture, publisher, subscribers = _before()
    _pass_on(publisher, subscribers, 15)
    for talk, side in ((publisher, C2S), (subscribers[0], S2C)):
        talk.exchange(side, b"t/1", b"kept", 99, retain=1, after_ms=2000)
    _pass_on(publisher, subscribers, 15)
    assert _lost(capture) == []


def test_where_bytes_of_a_subscriber_from_before_are_missing_nothing_is():
    capture, publisher, subscribers = _before()
    _pass_on(publisher, subscribers, 15)
    publisher.exchange(C2S, b"t/1", b"16 of all", 16, after_ms=2000)
    subscribers[0].exchange(S2C, b"t/1", b"16 of all", 16)
    del capture.frames[-2:]
    subscribers[0].exchange(S2C, b"other", b"elsewhere", 17)
    _pass_on(publisher, subscribers, 15)
    assert _lost(capture) == []


def _worlds():
    # Filters with and without wildcards, and topics, of few names; in some worlds many topics.
    rng = random.Random(1)
    names = ["a", "b", "", "c", "a.*\n"]
    for world in range(300):
        many = 4 if world % 10 else 100
        topics = ["/".join(rng.choices(names, k=rng.randint(1, 4))) for _ in range(many)]
        levels = [rng.choices([*names, "+"], k=rng.randint(0, 3)) for _ in range(8)]
        yield ["/".join([*some, rng.choice(["#", "+", "+/a"])]) for some in levels], topics


def test_subscriptions_are_kept_whose_filters_match():
    for patterns, topics in _worlds():
        patterns = [*patterns, "$share/g/" + patterns[0], topics[0], "a$share/b"]
        kept = that_match(pa.table({"filter": patterns}), sorted(set(topics)))[
            "filter"
        ].to_pylist()
        plain = [one.removeprefix("$share/g/") for one in patterns]
        found = [any(matches(one, topic) for topic in topics) for one in plain]
        assert kept == [one for one, is_kept in zip(patterns, found, strict=True) if is_kept]


def test_filters_are_told_all_topics_that_they_match():
    for patterns, topics in _worlds():
        topics = sorted(set(topics))
        found = matched({*patterns, *topics}, topics)
        for pattern in (*patterns, *topics):
            wanted = [place for place, name in enumerate(topics) if matches(pattern, name)]
            assert sorted(found[pattern]) == wanted, (pattern, topics)
