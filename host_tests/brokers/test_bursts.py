"""Many QoS 2 messages at once from real brokers to a client with its default settings."""

from contextlib import contextmanager

import pytest

from host_tests.brokers.clients import Node, Other, new_name

SENT = [b"%d" % number for number in range(300)]


@contextmanager
def subscribed(family, broker, is_clean, qos):
    """-> the client, subscribed, and what publishes this burst at these QoS."""
    topic = new_name("burst")
    with (
        Other(broker.port, family, window=family.qos2_window) as other,
        Node(broker.port, family) as node,
    ):
        node.client.connect(is_clean)
        node.client.subscribe(topic, qos)
        yield node, lambda *some: other.publish_all(topic, SENT, *some)


def arrived_on_one_connection(node, burst=None):
    """Publish the burst, if it is not there yet -> its payloads as they came."""
    reconnects = node.client.stats.reconnects
    if burst:
        burst()
    node.until(lambda: len(node.received) >= len(SENT))
    assert node.client.stats.reconnects == reconnects
    return node.payloads


@pytest.mark.parametrize("is_clean", [True, False])
def test_b2c_burst_of_qos2_arrives_once_in_order_on_one_connection(family, broker, is_clean):
    """31-4.1-Q2: no message is refused, so nobody has to reconnect for it."""
    qos = min(2, family.publish_qos, family.granted_qos)
    with subscribed(family, broker, is_clean, qos) as (node, publish):
        assert arrived_on_one_connection(node, lambda: publish(qos)) == SENT


def test_b2c_burst_that_waited_offline_arrives_once_in_order_on_one_connection(family, broker):
    qos = min(family.offline_qos, family.granted_qos)
    with subscribed(family, broker, False, qos) as (node, publish):
        node.client.disconnect()
        publish(qos)
        node.client.connect(False)
        assert arrived_on_one_connection(node) == SENT


def test_b2c_burst_of_both_qos_arrives_on_one_connection(family, broker):
    """31-4.1-Q2: the ids of QoS 2 messages have gaps then; the session is a clean one."""
    qos = min(2, family.publish_qos, family.granted_qos)
    with subscribed(family, broker, True, qos) as (node, publish):
        assert sorted(arrived_on_one_connection(node, lambda: publish(1, qos))) == sorted(SENT)
