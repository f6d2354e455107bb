"""Messages of every kind through real brokers, in both directions.

31-4.1-Q0, 31-4.1-Q1, 31-4.1-Q2: each arrives once, with the lower of the two QoS.
"""

import itertools

import pytest

from host_tests.brokers.clients import Got, Node, Other, new_name
from umqtt31 import MQTTError

QUALITIES = (0, 1, 2)
PAIRS = list(itertools.product(QUALITIES, QUALITIES))
QOS_NOT_SUPPORTED = 0x9B


@pytest.mark.parametrize(("published", "subscribed"), PAIRS)
def test_c2b_message_at_each_qos_arrives_once_at_the_lower_one(
    family, broker, published, subscribed
):
    published = min(published, family.publish_qos)
    topic = new_name("out")
    with Other(broker.port, family) as other, Node(broker.port, family) as node:
        other.subscribe(topic, subscribed)
        node.publish(topic, b"one", qos=published)
        node.publish(topic, b"last", qos=published)
        other.wait(2)
        qos = min(published, subscribed, family.granted_qos)
        assert other.received == [Got(topic, b"one", qos, False), Got(topic, b"last", qos, False)]
        assert not node.client.inflight


@pytest.mark.parametrize(("published", "subscribed"), PAIRS)
def test_b2c_message_at_each_qos_arrives_once_at_the_lower_one(
    family, broker, published, subscribed
):
    published = min(published, family.publish_qos)
    topic = new_name("in")
    with Other(broker.port, family) as other, Node(broker.port, family) as node:
        granted = node.client.subscribe(topic, subscribed)
        assert granted == [min(subscribed, family.granted_qos)]
        other.publish(topic, b"one", published)
        other.publish(topic, b"last", published)
        node.until(lambda: len(node.received) >= 2)
        qos = min(published, *granted)
        assert node.received == [Got(topic, b"one", qos, False), Got(topic, b"last", qos, False)]


def test_c2b_qos2_taken_for_qos1_stays_in_flight_or_is_refused_before(family, broker):
    """31-4.1-Q2: a PUBACK does not end a QoS 2 flow, whoever sends it."""
    with Node(broker.port, family) as node:
        if family.level == 5 and family.publish_qos < 2:
            with pytest.raises(MQTTError) as refused:
                node.client.publish(new_name("out"), b"x", qos=2)
            assert refused.value.code == QOS_NOT_SUPPORTED
        else:
            node.client.publish(new_name("out"), b"x", qos=2)
        is_done = node.client.flush(1000)
        stays = family.publish_qos < 2 and family.level < 5
        assert is_done is not stays
        assert node.client.inflight == stays


@pytest.mark.parametrize("qos", QUALITIES)
def test_both_ways_message_from_and_to_the_same_client_arrives_once(family, broker, qos):
    qos = min(qos, family.publish_qos)
    topic = new_name("loop")
    with Node(broker.port, family) as node:
        node.client.subscribe(topic, qos)
        for number in range(20):
            node.publish(topic, b"%d" % number, qos=qos)
        node.until(lambda: len(node.received) >= 20)
        assert node.payloads == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("qos", QUALITIES)
@pytest.mark.parametrize("size", [0, 1, 127, 128, 16000])
def test_both_ways_payload_of_each_size_arrives_unchanged(family, broker, size, qos):
    qos = min(qos, family.publish_qos)
    topic = new_name("size")
    payload = bytes(i * 7 & 255 for i in range(size))
    with Other(broker.port, family) as other, Node(broker.port, family, buffer_size=16383) as node:
        node.client.subscribe(topic, qos)
        other.subscribe(topic, qos)
        node.publish(topic, payload, qos=qos)
        node.until(lambda: node.received)
        assert node.payloads == [payload]
        assert other.wait(1)[0].payload == payload


@pytest.mark.parametrize("qos", QUALITIES)
def test_b2c_message_larger_than_the_buffer_is_reported_and_the_next_arrives(family, broker, qos):
    """The connection lives on, and the large one is acknowledged: it does not come again."""
    qos = min(qos, family.publish_qos)
    topic = new_name("large")
    told = []
    node = Node(broker.port, family)
    if family.level == 5:
        node.client.v5.maximum_packet_size = 0  # else the broker leaves it out
    with Other(broker.port, family) as other, node:
        node.client.on_oversize = lambda *sizes: told.append(sizes)
        node.client.subscribe(topic, qos)
        other.publish(topic, bytes(100_000), qos)
        other.publish(topic, b"small", qos)
        node.until(lambda: node.received)
        assert node.payloads == [b"small"]
        no_properties = family.level == 5  # their length counts, one byte
        assert told == [(len(topic), 100_000 + no_properties)]
        assert node.client.stats["reconnects"] == 0


def test_b2c_wildcards_select_the_topics_they_match(family, broker):
    """31-A-HASH, 31-A-PLUS, as the broker understands the filters."""
    root = new_name("wild")
    with Other(broker.port, family) as other, Node(broker.port, family) as node:
        node.client.subscribe([(root + "/+/temp", 1), (root + "/hall/#", 1)])
        topics = ["kitchen/temp", "hall/light", "hall/lamp/power", "kitchen/light", "temp"]
        for topic in topics:
            other.publish(f"{root}/{topic}", topic.encode(), 1)
        other.publish(f"{root}/end/temp", b"end", 1)
        node.until(lambda: b"end" in node.payloads)
        assert node.payloads == [b"kitchen/temp", b"hall/light", b"hall/lamp/power", b"end"]


def test_b2c_filter_unsubscribed_brings_nothing_more(family, broker):
    kept, left = new_name("kept"), new_name("left")
    with Other(broker.port, family) as other, Node(broker.port, family) as node:
        node.client.subscribe([(kept, 1), (left, 1)])
        node.client.unsubscribe(left)
        other.publish(left, b"no", 1)
        other.publish(kept, b"yes", 1)
        node.until(lambda: node.received)
        assert node.payloads == [b"yes"]
