"""Thousands of messages through a broker that goes down on the way, again and again.

The publisher is umqtt31, the receivers are umqtt31 and paho-mqtt.  A broker that
persists goes down at any moment; one that forgets has to have handed over what it has
acknowledged, which leaves the messages that the publisher has in flight.
"""

import pytest

from host_tests.brokers.clients import Node, Other, Watched, new_name
from host_tests.brokers.conftest import of_families

LENGTHS = [
    pytest.param(2_000, id="2000"),
    pytest.param(10_000, id="10000", marks=pytest.mark.broker),
]
INTERRUPTIONS = 4
# How far a receiver may be behind.  Mosquitto 2.0 sends QoS 2 messages beyond its window of
# 20 as new ones after a restart, even those whose PUBREL it has sent.
LAG = 18

PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(3, 8)
# By QoS: the packets at which the broker goes down, and whether that is before they are written.
# What it has sent is read when it is gone.
_SENT = ((PUBLISH, True), (PUBLISH, False))
STEPS = {
    1: (*_SENT, (PUBACK, False)),
    2: (*_SENT, (PUBREC, False), (PUBREL, True), (PUBREL, False), (PUBCOMP, False)),
}


@pytest.fixture
def own_broker(family):
    with family.make() as running:
        yield running


class Traffic:
    """One publisher and two receivers on a topic of their own, all with a session."""

    def __init__(self, broker, family, qos, window):
        self.qos = qos
        self.topic = new_name("long")
        self.sent = 0
        self.sender = Node(broker.port, family, max_inflight=window)
        self.receiver = Node(broker.port, family, max_awaiting_rel=100)
        self.other = Other(broker.port, family, is_clean=False)

    def __enter__(self):
        for node in (self.sender, self.receiver):
            node.client.connect(False)
        self.receiver.client.subscribe(self.topic, self.qos)
        self.other.__enter__()
        self.other.subscribe(self.topic, self.qos)
        return self

    def __exit__(self, *_):
        self.other.__exit__()
        for node in (self.sender, self.receiver):
            node.client.disconnect()

    @property
    def lag(self):
        """How many messages the slower receiver has not got, by the last one it has."""
        received = (self.receiver.received, self.other.received)
        return self.sent - min(int(got[-1].payload) + 1 if got else 0 for got in received)

    @property
    def waiting(self):
        """How many messages the broker has not acknowledged."""
        return self.sender.client.inflight + self.sender.client.queued

    def publish(self, count):
        """Send the next `count` numbers; some are still on their way afterwards."""
        for _ in range(count):
            self.sender.until(self._has_room)
            self.sender.client.publish(self.topic, b"%d" % self.sent, qos=self.qos)
            self.sent += 1

    def _has_room(self):
        # May the next one follow?  Else the receiver goes on, too.
        if self.lag < LAG and self.sender.client.queued < 16:
            return True
        self.receiver.step()
        return False

    def catch_up(self):
        """Receive all that has left the sender, so all that the broker may have acknowledged."""
        given = {b"%d" % number for number in range(self.sent - self.sender.client.queued)}
        self.receiver.until(lambda: given <= set(self.receiver.payloads))
        self.other.wait_for_all(given)

    def come_back(self, times):
        """Let the receivers connect and subscribe again, which makes it so many times."""
        self.receiver.until(lambda: self.receiver.client.stats["reconnects"] >= times)
        self.receiver.client.subscribe(self.topic, self.qos)
        self.other.wait_for_connection(times + 1)

    def finish(self):
        """-> the numbers that each receiver got, in order of arrival."""
        self.sender.until(lambda: not self.waiting)
        self.catch_up()
        return [[int(payload) for payload in end.payloads] for end in (self.receiver, self.other)]


@pytest.mark.parametrize("count", LENGTHS)
@pytest.mark.parametrize(
    ("family", "qos"),
    of_families(lambda family: ((qos,) for qos in range(1, family.kept_qos + 1))),
    indirect=["family"],
)
def test_broker_that_persists_down_on_the_way_loses_nothing(family, own_broker, qos, count):
    """31-4.1-Q1, 31-4.1-Q2: at QoS 2 also nothing twice, and all in order."""
    with Traffic(own_broker, family, qos, family.qos2_window) as traffic:
        for _ in range(INTERRUPTIONS):
            traffic.publish(count // (INTERRUPTIONS + 1))
            family.interrupt(own_broker)
        traffic.publish(count - traffic.sent)
        for numbers in traffic.finish():
            assert set(numbers) == set(range(count))
            if qos == 2:
                assert numbers == list(range(count))


@pytest.mark.parametrize("count", LENGTHS)
def test_qos1_broker_killed_loses_nothing_that_it_has_not_acknowledged(family, own_broker, count):
    """31-4.1-Q1"""
    with Traffic(own_broker, family, 1, 10) as traffic:
        for number in range(INTERRUPTIONS):
            traffic.publish(count // (INTERRUPTIONS + 1))
            traffic.catch_up()
            assert traffic.waiting
            own_broker.kill()
            own_broker.start()
            traffic.come_back(number + 1)
        traffic.publish(count - traffic.sent)
        for numbers in traffic.finish():
            assert set(numbers) == set(range(count))


def test_b2c_broker_killed_gets_the_filters_again(family, own_broker, topic):
    """At level 3 it cannot say that it forgot them, so they are sent on every connection."""
    node = Node(own_broker.port, family)
    node.client.connect(False)
    node.client.subscribe(topic, 1)
    own_broker.kill()
    own_broker.start()
    node.until(lambda: node.client.stats["reconnects"])
    node.client.publish(topic, b"x", qos=1)
    node.until(lambda: node.received)
    node.client.disconnect()
    assert node.payloads == [b"x"]


class Killing(Watched):
    """Its broker is killed at the first packet of one kind, and started again."""

    def __init__(self, broker, other, kind, is_before):
        super().__init__(broker)
        self._other = other
        self._kind = kind
        self._is_before = is_before
        self.has_killed = False

    def saw(self, first, is_before):
        is_time = self._is_before or not is_before
        if first >> 4 == self._kind and is_time and not self.has_killed:
            self.has_killed = True
            self._broker.kill()
            self._broker.start()
            self._other.wait_for_next_connection()


@pytest.mark.parametrize(
    ("family", "qos"),
    of_families(lambda family: ((qos,) for qos in range(1, family.publish_qos + 1))),
    indirect=["family"],
)
def test_c2b_broker_killed_at_each_step_of_a_flow_then_it_ends_and_nothing_is_lost(
    family, own_broker, topic, qos
):
    """31-4.1-Q1, 31-4.1-Q2.  With a broker that forgets, what it may have acknowledged can be lost
    and, at level 3, where it cannot say that it forgot, what it may have answered by PUBREC."""
    with Other(own_broker.port, family) as other:
        other.subscribe(topic, 1)
        has_all = qos < 2 or family.level > 3 or family.takes_pubrel_again
        for step in STEPS[qos] if has_all else STEPS[qos][:1]:
            kind, is_before = step
            node = Node(own_broker.port, family)
            killing = Killing(own_broker, other, kind, is_before)
            node.client.connect(False, killing)
            payload = b"%d %d" % step
            node.client.publish(topic, payload, qos=qos)
            node.until(lambda client=node.client: not client.inflight)
            assert killing.has_killed, step
            is_open = is_before or qos == 2 and kind < PUBREL  # it cannot have ended the flow
            if family.level == 3:
                is_open = step == (PUBLISH, True)
            if family.survives_kill or is_open:
                other.wait_for_all({payload})
            node.client.disconnect()
