"""Members of groups, and filters with wildcards; `traces/subscribers.txt` has the rest."""

import random

import pyarrow as pa
import pytest

from host_tests.fleet.captures import C2S, S2C, connected, lost_of
from tools.fleet.audit.spans import matched, that_match
from tools.fleet.mqtt import matches

_FILTER = b"$share/backend/t/#"


@pytest.mark.parametrize("every", [2, 15])
def test_members_of_a_shared_subscription_from_before_miss_nothing(every):
    """Each message goes to one of them, be it now and then only to the second one."""
    capture, publisher = connected(b"pub")
    members = [capture.middle(b"before%d" % number) for number in range(2)]
    payloads = [b"%d of all" % number for number in range(1, 61)]
    taken = [members[number % every == 0] for number in range(1, 61)]
    _share_out(publisher, taken, payloads)
    assert _lost_of_groups(capture) == []


def _group(count, clean=True):
    """-> (`Capture`, a publisher, the members of a group)"""
    capture, publisher = connected(b"pub")
    members = [capture.connection(b"member%d" % n, clean=clean) for n in range(count)]
    for member in members:
        member.subscribe(_FILTER, 1)
    return capture, publisher, members


def _share_out(publisher, members, payloads, lost=()):
    """Each to the next member, but those with these numbers, from 0."""
    for number, payload in enumerate(payloads):
        publisher.exchange(C2S, b"t/1", payload, number + 1, after_ms=2000)
        if number not in lost:
            members[number % len(members)].exchange(S2C, b"t/1", payload, number + 1)


def _wait(members):
    for member in members:
        member.quiet(6000)


def _lost_of_groups(capture):
    tables = capture.audit()
    assert not tables["violations"].num_rows
    assert not sum(tables["routes"]["lost"].to_pylist())
    return lost_of(tables, "client_id", "published_by", "kind", "sure")


@pytest.mark.parametrize("lost", [(4,), ()])
@pytest.mark.parametrize(
    "payloads",
    [[b"%d of 9" % n for n in range(9)], [b"30", b"31"] * 5, [b"30", b"31", b"30", b"30"] * 5],
)
def test_message_that_no_member_got_is_told_and_nothing_else(payloads, lost):
    capture, publisher, members = _group(3)
    _share_out(publisher, members, payloads, lost)
    _wait(members)
    told = [(_FILTER.decode(), "pub", "not_delivered", "likely", number + 1) for number in lost]
    assert _lost_of_groups(capture) == told


def test_clients_in_several_groups_are_members_of_each():
    capture, publisher, members = _group(2)
    for packet_id, name in ((2, b"$share/other/t/#"), (3, b"$share/third/t/#")):
        members[packet_id % 2].subscribe(name, 1, packet_id)
    for number in range(1, 10):
        payload = b"%d of 9" % number
        publisher.exchange(C2S, b"t/1", payload, number, after_ms=2000)
        if number != 5:
            members[number % 2].exchange(S2C, b"t/1", payload, 10 * number)
        for place in range(2):
            members[place].exchange(S2C, b"t/1", payload, 10 * number + 1 + place)
    _wait(members)
    # Of equal copies nobody knows which group they are for.
    assert _lost_of_groups(capture) == []


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
        kept = that_match(pa.table({"filter": patterns}), sorted(set(topics)))
        plain = [one.removeprefix("$share/g/") for one in patterns]
        found = [any(matches(one, topic) for topic in topics) for one in plain]
        assert kept["filter"].to_pylist() == [
            one for one, is_kept in zip(patterns, found, strict=True) if is_kept
        ]


def test_filters_are_told_all_topics_that_they_match():
    for patterns, topics in _worlds():
        topics = sorted(set(topics))
        found = matched({*patterns, *topics}, topics)
        for pattern in (*patterns, *topics):
            wanted = [place for place, name in enumerate(topics) if matches(pattern, name)]
            assert sorted(found[pattern]) == wanted, (pattern, topics)
