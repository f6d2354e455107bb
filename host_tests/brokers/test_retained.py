"""Retained messages and the will, kept by real brokers.

31-3.3-RETAIN: a new subscriber gets the last one with the flag set, a present one without.
"""

from host_tests.brokers.clients import Got, Node, Other, new_name
from tools.demo.proxy import Proxy


def test_c2b_retained_message_reaches_who_subscribes_later(family, broker):
    topic = new_name("kept")
    with Other(broker.port, family) as other, Node(broker.port, family) as node:
        node.publish(topic, b"old", retain=True, qos=1)
        node.publish(topic, b"new", retain=True, qos=1)
        other.subscribe(topic, 1)
        assert other.wait(1) == [Got(topic, b"new", 1, True)]


def test_b2c_retained_message_carries_the_flag_only_for_a_new_subscriber(family, broker):
    topic = new_name("kept")
    with (
        Other(broker.port, family) as other,
        Node(broker.port, family) as early,
        Node(broker.port, family) as late,
    ):
        early.client.subscribe(topic, 1)
        other.publish(topic, b"x", 1, retain=True)
        early.until(lambda: early.received)
        late.client.subscribe(topic, 1)
        late.until(lambda: late.received)
        assert early.received == [Got(topic, b"x", 1, False)]
        assert late.received == [Got(topic, b"x", 1, True)]


def test_b2c_retained_messages_are_found_by_a_wildcard_where_the_broker_looks(family, broker):
    root = new_name("kept")
    with Node(broker.port, family) as node:
        node.publish(root + "/a", b"x", retain=True, qos=1)
        node.client.subscribe(root + "/+", 1)
        node.publish(root + "/end", b"end", qos=1)
        node.until(lambda: b"end" in node.payloads)
        assert (b"x" in node.payloads) == family.retained_by_wildcard


def test_c2b_empty_retained_message_clears_the_topic(family, broker):
    topic = new_name("kept")
    with Other(broker.port, family) as other, Node(broker.port, family) as node:
        node.publish(topic, b"x", retain=True, qos=1)
        node.publish(topic, b"", retain=True, qos=1)
        other.subscribe(topic, 1)
        node.publish(topic, b"end", qos=1)
        assert [got.payload for got in other.wait(1)] == [b"end"]


def test_will_when_the_connection_is_cut_is_published(family, broker):
    """31-3.1-WILL"""
    topic = new_name("will")
    with Other(broker.port, family) as other, Proxy(broker.port) as proxy:
        other.subscribe(topic, 1)
        node = Node(proxy.port, family)
        node.client.set_last_will(topic, b"gone", qos=1)
        node.client.connect()
        proxy.cut()
        assert other.wait(1) == [Got(topic, b"gone", 1, False)]


def test_will_after_a_goodbye_is_not_published(family, broker):
    """31-3.14: DISCONNECT takes the will back."""
    topic = new_name("will")
    with Other(broker.port, family) as other:
        other.subscribe(topic, 1)
        node = Node(broker.port, family)
        node.client.set_last_will(topic, b"gone", qos=1)
        with node:
            pass
        other.publish(topic, b"end", 1)
        assert [got.payload for got in other.wait(1)] == [b"end"]
