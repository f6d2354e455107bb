"""Loss, among payloads that come again and again, and seen by clients from before."""

import itertools

from host_tests.fleet.simulate.fleet import reading
from tools.demo.tap import BROKER

from .stage import NUMBERED, TOPIC, VALUES, Truth, situation, swallow


def drop(which, name=None, kind=3):
    """A fault that loses the deliveries (or packets of another kind) with these numbers, from 0,
    of all or to one client."""
    seen = itertools.count()

    def fault(link, sender, packet):
        if packet[0] >> 4 != kind or sender != BROKER or name not in (None, link.name):
            return True
        return next(seen) not in which or swallow(link, packet)

    return fault


@situation(Truth(lost={("sub", TOPIC): [6]}))
def one_of_plain_values_lost(stage):
    pub, sub = stage.both()
    stage.recorder.fault = drop([6])
    pub.publish(TOPIC, *VALUES, quiet_s=30)
    sub.wait(9)


@situation(Truth(lost={("sub", TOPIC): [4]}))
def one_of_equal_values_lost(stage):
    """All payloads are equal: only time tells which one is missing."""
    pub, sub = stage.both()
    stage.recorder.fault = drop([4])
    pub.publish(TOPIC, *[b"30"] * 9, quiet_s=30)
    sub.wait(8)


@situation(Truth(lost={("sub", TOPIC): [5]}))
def one_of_plain_values_lost_from_the_queue(stage):
    """Ten wait for the subscriber; only their order tells which one is missing."""
    pub, sub = stage.both(clean=False)
    sub.disconnect()
    pub.publish(TOPIC, b"1", b"2", b"1", b"2", b"3", b"1", b"2", b"3", b"2", b"1", quiet_s=1)
    stage.recorder.fault = drop([5])
    again = stage.client("sub", clean=False)
    again.wait(9)


@situation(Truth(unexplained={("sub", TOPIC): [5, 6, 7, 8, 9]}), max_inflight_messages=1)
def queue_of_plain_values_that_is_not_emptied(stage):
    """The client is heard of no more behind the fifth: what came is the queue's beginning."""
    pub, sub = stage.both(clean=False)
    sub.disconnect()
    pub.publish(TOPIC, *VALUES, quiet_s=1)
    seen = itertools.count(1)

    def fault(link, sender, packet):
        if packet[0] >> 4 == 3 and sender == BROKER and link.name == b"sub":
            link.is_unplugged = next(seen) == 5
        return True

    stage.recorder.fault = fault
    stage.client("sub", clean=False).wait(5)


@situation(
    Truth(lost={("sub", TOPIC): [4, 5, 6, 7, 8, 9]}),
    max_inflight_messages=1,
    max_queued_messages=4,
)
def queue_that_is_too_small(stage):
    """The broker keeps four for the subscriber that is away, and drops the rest."""
    pub, sub = stage.both(clean=False)
    sub.disconnect()
    pub.publish(TOPIC, *NUMBERED[:10], quiet_s=1)
    again = stage.client("sub", clean=False)
    again.wait(4)
    pub.publish(TOPIC, b"number 10")
    again.wait(5)


@situation(Truth(lost={("sub", "site/pub4"): [6], ("sub", "site/pub5"): [7]}))
def lost_by_a_new_subscriber(stage):
    """The publishers, of levels 4 and 5, are there before the subscriber comes."""
    pubs = [stage.client("pub4"), stage.client("pub5", level=5)]
    for pub in pubs:
        pub.publish("site/" + pub.name, b"30", b"31")
    sub = stage.client("sub").subscribe("site/#")
    stage.recorder.fault = drop([8, 11])
    for value in VALUES:
        for pub in pubs:
            pub.publish("site/" + pub.name, value)
        stage.quiet(10)
    sub.wait(18)


@situation()
def readings_for_two_collectors(stage):
    """Both are there before the device comes."""
    subs = [stage.client("sub%d" % level, level=level) for level in (4, 5)]
    for sub in subs:
        sub.subscribe("site/#", 2)
    dev = stage.client("dev")
    for number in range(1, 9):
        payload = reading(257, 1, number, number, 1, b"dev", (2100 + number, 3300))
        dev.publish(TOPIC, payload, qos=2)
    for sub in subs:
        sub.wait(8)
