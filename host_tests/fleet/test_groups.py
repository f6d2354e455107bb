"""Shared subscriptions: what no member got is told, and held against nobody."""

import pytest

from host_tests.fleet.captures import C2S, S2C, Talk, connected, lost_of

_FILTER = b"$share/backend/t/#"


def _group(count, clean=True):
    """-> (`Capture`, a publisher, the members of a group)"""
    capture, publisher = connected(b"pub")
    members = [capture.connection(b"member%d" % n, clean=clean) for n in range(count)]
    for member in members:
        member.subscribe(_FILTER, 1)
    return capture, publisher, members


def _pass_on(publisher, members, payloads, lost=()):
    """Each to the next member, but those with these numbers, from 0."""
    for number, payload in enumerate(payloads):
        publisher.exchange(C2S, b"t/1", payload, number + 1, after_ms=2000)
        if number not in lost:
            members[number % len(members)].exchange(S2C, b"t/1", payload, number + 1)


def _wait(members):
    for member in members:
        member.quiet(6000)


def _losses(capture):
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
    _pass_on(publisher, members, payloads, lost)
    _wait(members)
    told = [(_FILTER.decode(), "pub", "not_delivered", "likely", number + 1) for number in lost]
    assert _losses(capture) == told


@pytest.mark.parametrize("end", [Talk.bye, Talk.reset])
def test_member_that_is_gone_may_have_a_message_waiting(end):
    capture, publisher, members = _group(2, clean=False)
    _pass_on(publisher, members, [b"%d of 4" % n for n in range(4)])
    end(members[1])
    _pass_on(publisher, members[:1], [b"%d of 6" % n for n in range(6)], lost=(3,))
    _wait(members[:1])
    assert _losses(capture) == []


def test_member_that_acknowledges_nothing_may_have_messages_waiting():
    capture, publisher, members = _group(2)
    publisher.exchange(C2S, b"t/1", b"first", 99)
    members[1].publish(S2C, b"t/1", b"first", 1, 99)
    _pass_on(publisher, members[:1], [b"%d of 6" % n for n in range(6)], lost=(3,))
    _wait(members)
    assert _losses(capture) == []


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
    assert _losses(capture) == []
