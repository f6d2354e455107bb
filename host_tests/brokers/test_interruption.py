"""Many messages through a broker that goes down on the way, again and again.

The publisher is umqtt31, the receivers are umqtt31 and paho-mqtt.  The full length
runs in `make test-brokers`.
"""

import pytest

from host_tests.brokers.node import Node, Other, new_name

LENGTHS = [pytest.param(400, id="400"), pytest.param(10_000, id="10000", marks=pytest.mark.broker)]
INTERRUPTIONS = 3


@pytest.fixture
def own_broker(family):
    with family.make() as running:
        yield running


def run(family, broker, count, qos):
    """Publish `count` numbers -> what the two receivers got, in order of arrival."""
    topic = new_name("long")
    every = count // (INTERRUPTIONS + 1)
    receiver = Node(broker.port, max_awaiting_rel=100)
    receiver.client.connect(False)
    receiver.client.subscribe(topic, qos)
    sender = Node(broker.port, max_inflight=family.window)
    sender.client.connect(False)
    with Other(broker.port, is_clean=False) as other:
        other.subscribe(topic, qos)
        for number in range(count):
            while sender.client.queued >= 16:
                sender.step()
                receiver.step()
            sender.client.publish(topic, b"%d" % number, qos=qos)
            if number % every == every - 1 and number + every < count + INTERRUPTIONS:
                family.interrupt(broker)
        sender.until(lambda: not sender.client.inflight + sender.client.queued)
        receiver.until(lambda: len(set(receiver.payloads)) == count, 120)
        other.wait_for_all(count, 120)
        sender.client.disconnect()
        receiver.client.disconnect()
        return [[int(payload) for payload in end.payloads] for end in (receiver, other)]


@pytest.mark.parametrize("count", LENGTHS)
def test_qos1_broker_down_on_the_way_loses_nothing(family, own_broker, count):
    for numbers in run(family, own_broker, count, 1):
        assert sorted(set(numbers)) == list(range(count))


@pytest.mark.parametrize("count", LENGTHS)
def test_qos2_broker_down_on_the_way_loses_and_repeats_nothing(family, own_broker, count):
    """31-4.1-Q2: exactly once and in order, where the broker does its part."""
    for numbers in run(family, own_broker, count, family.publish_qos):
        if family.publish_qos == 2 and family.is_exact_over_restart:
            assert numbers == list(range(count))
        else:
            assert sorted(set(numbers)) == list(range(count))


def test_b2c_broker_killed_gets_the_filters_again(own_broker):
    """At level 3 it cannot say that it forgot them, so they are sent on every connection."""
    topic = new_name("again")
    node = Node(own_broker.port)
    node.client.connect(False)
    node.client.subscribe(topic, 1)
    own_broker.kill()
    own_broker.start()
    node.until(lambda: node.client.stats["reconnects"])
    node.client.publish(topic, b"x", qos=1)
    node.until(lambda: node.received)
    node.client.disconnect()
    assert node.payloads == [b"x"]
