"""Many QoS 2 messages at once from real brokers to a client with its default settings."""

import pytest

from host_tests.brokers.clients import Node, Other, new_name

COUNT = 300


@pytest.mark.parametrize("is_clean", [True, False])
def test_b2c_burst_of_qos2_arrives_once_in_order_on_one_connection(family, broker, is_clean):
    """31-4.1-Q2: no message is refused, so nobody has to reconnect for it."""
    qos = min(2, family.publish_qos, family.granted_qos)
    topic = new_name("burst")
    sent = [b"%d" % number for number in range(COUNT)]
    with (
        Other(broker.port, family, window=family.qos2_window) as other,
        Node(broker.port, family) as node,
    ):
        node.client.connect(is_clean)
        node.client.subscribe(topic, qos)
        reconnects = node.client.stats.reconnects
        other.publish_all(topic, sent, qos)
        node.until(lambda: len(node.received) >= COUNT)
        assert node.payloads == sent
        assert node.client.stats.reconnects == reconnects


def test_b2c_burst_that_waited_offline_arrives_once_in_order_on_one_connection(family, broker):
    qos = min(family.offline_qos, family.granted_qos)
    topic = new_name("burst")
    sent = [b"%d" % number for number in range(COUNT)]
    with (
        Other(broker.port, family, window=family.qos2_window) as other,
        Node(broker.port, family) as node,
    ):
        node.client.connect(False)
        node.client.subscribe(topic, qos)
        node.client.disconnect()
        other.publish_all(topic, sent, qos)
        node.client.connect(False)
        reconnects = node.client.stats.reconnects
        node.until(lambda: len(node.received) >= COUNT)
        assert node.payloads == sent
        assert node.client.stats.reconnects == reconnects


def test_b2c_burst_of_both_qos_arrives_on_one_connection(family, broker):
    """31-4.1-Q2: the ids of QoS 2 messages have gaps then; the session is a clean one."""
    qos = min(2, family.publish_qos, family.granted_qos)
    topic = new_name("burst")
    sent = [b"%d" % number for number in range(COUNT)]
    with (
        Other(broker.port, family, window=family.qos2_window) as other,
        Node(broker.port, family) as node,
    ):
        node.client.connect(True)
        node.client.subscribe(topic, qos)
        reconnects = node.client.stats.reconnects
        other.publish_all(topic, sent, 1, qos)
        node.until(lambda: len(node.received) >= COUNT)
        assert sorted(node.payloads) == sorted(sent)
        assert node.client.stats.reconnects == reconnects
