"""Messages of every kind through real brokers, in both directions.

31-4.1-Q0, 31-4.1-Q1, 31-4.1-Q2: each arrives once, with the lower of the two QoS.
"""

import itertools

import pytest

from host_tests.brokers.clients import Got, Node, Other
from tools.demo.proxy import Proxy
from umqtt31 import MQTTError

QUALITIES = (0, 1, 2)
PAIRS = list(itertools.product(QUALITIES, QUALITIES))
QOS_NOT_SUPPORTED = 0x9B
BURST = [b"%d" % number for number in range(300)]


@pytest.fixture(params=QUALITIES)
def qos(request, family):
    """Each that the broker takes."""
    return min(request.param, family.publish_qos)


@pytest.mark.parametrize(("published", "subscribed"), PAIRS)
def test_both_ways_message_at_each_qos_arrives_once_at_the_lower_one(
    family, node, other, topic, published, subscribed
):
    """Both ends hear both."""
    published = min(published, family.publish_qos)
    other.subscribe(topic, subscribed)
    granted = node.client.subscribe(topic, subscribed)
    assert granted == [min(subscribed, family.granted_qos)]
    expected = []
    for end, payload in ((node, b"1"), (node, b"2"), (other, b"3"), (other, b"4")):
        end.publish(topic, payload, qos=published)
        expected.append(Got(topic, payload, min(published, *granted), False))
        other.wait(len(expected))
        node.until(lambda: len(node.received) >= len(expected))
    assert node.received == expected == other.received
    assert not node.client.inflight


def test_c2b_qos2_taken_for_qos1_stays_in_flight_or_is_refused_before(family, node, topic):
    """31-4.1-Q2: a PUBACK does not end a QoS 2 flow, whoever sends it."""
    if family.level == 5 and family.publish_qos < 2:
        with pytest.raises(MQTTError) as refused:
            node.client.publish(topic, b"x", qos=2)
        assert refused.value.code == QOS_NOT_SUPPORTED
    else:
        node.client.publish(topic, b"x", qos=2)
    is_done = node.client.flush(1000)
    stays = family.publish_qos < 2 and family.level < 5
    assert is_done is not stays
    assert node.client.inflight == stays


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16000])
def test_both_ways_payload_of_each_size_arrives_unchanged(family, broker, other, topic, size, qos):
    payload = bytes(i * 7 & 255 for i in range(size))
    with Node(broker.port, family, buffer_size=16383) as node:
        node.client.subscribe(topic, qos)
        other.subscribe(topic, qos)
        node.publish(topic, payload, qos=qos)
        node.until(lambda: node.received)
    assert node.payloads == [payload]
    assert other.wait(1)[0].payload == payload


@pytest.mark.parametrize("limit", [0, None])
def test_b2c_message_larger_than_the_buffer_is_reported_and_the_next_arrives(
    family, broker, other, topic, qos, limit
):
    """The connection lives on, and the large one is acknowledged: it does not come again.  A
    broker of level 5 may leave it out, and tells nobody."""
    told = []
    node = Node(broker.port, family)
    if family.level == 5:
        node.client.v5.maximum_packet_size = limit  # None: the size of the buffer
    with node:
        node.client.on_oversize = lambda *sizes: told.append(sizes)
        node.client.subscribe(topic, qos)
        other.publish(topic, bytes(100_000), qos)
        other.publish(topic, b"small", qos)
        node.until(lambda: node.received)
    assert node.payloads == [b"small"]
    no_properties = family.level == 5  # their length counts, one byte
    is_left_out = family.level == 5 and limit is None and family.keeps_to_packet_size
    assert told == [(len(topic), 100_000 + no_properties)] * (not is_left_out)
    assert node.client.stats["reconnects"] == 0


def test_b2c_wildcards_select_the_topics_they_match(node, other, topic):
    """31-A-HASH, 31-A-PLUS, as the broker understands the filters."""
    node.client.subscribe([(topic + "/+/temp", 1), (topic + "/hall/#", 1)])
    for below in ["kitchen/temp", "hall/light", "hall/lamp/power", "kitchen/light", "temp"]:
        other.publish(f"{topic}/{below}", below.encode(), 1)
    other.publish(f"{topic}/end/temp", b"end", 1)
    node.until(lambda: b"end" in node.payloads)
    assert node.payloads == [b"kitchen/temp", b"hall/light", b"hall/lamp/power", b"end"]


def test_b2c_filter_unsubscribed_brings_nothing_more(node, other, topic):
    kept, left = topic + "/kept", topic + "/left"
    node.client.subscribe([(kept, 1), (left, 1)])
    node.client.unsubscribe(left)
    other.publish(left, b"no", 1)
    other.publish(kept, b"yes", 1)
    node.until(lambda: node.received)
    assert node.payloads == [b"yes"]


# --- many at once, to a client with its default settings -------------------------------


@pytest.fixture
def crowd(family, broker):
    """What publishes as many at once as the broker bears."""
    with Other(broker.port, family, window=family.qos2_window) as other:
        yield other


def arrived(node, burst):
    """Let all of it come, on one connection -> its payloads as they came."""
    reconnects = node.client.stats.reconnects
    burst()
    node.until(lambda: len(node.received) >= len(BURST))
    assert node.client.stats.reconnects == reconnects
    return node.payloads


@pytest.mark.parametrize("is_clean", [True, False])
def test_b2c_burst_of_qos2_arrives_once_in_order_on_one_connection(
    family, node, crowd, topic, is_clean
):
    """31-4.1-Q2: no message is refused, so nobody has to reconnect for it."""
    qos = min(2, family.publish_qos, family.granted_qos)
    node.client.connect(is_clean)
    node.client.subscribe(topic, qos)
    assert arrived(node, lambda: crowd.publish_all(topic, BURST, qos)) == BURST


@pytest.mark.parametrize("qos", [1, 2])
def test_b2c_burst_that_waited_offline_arrives_once_in_order_on_one_connection(
    family, node, crowd, topic, qos
):
    """31-3.1-CLEAN: a session that is not clean is kept."""
    qos = min(qos, family.offline_qos, family.granted_qos)
    node.client.connect(False)
    node.client.subscribe(topic, qos)
    node.client.disconnect()
    crowd.publish_all(topic, BURST, qos)
    node.client.connect(False)
    assert arrived(node, lambda: None) == BURST


def test_b2c_burst_of_both_qos_arrives_on_one_connection(family, node, crowd, topic):
    """31-4.1-Q2: the ids of QoS 2 messages have gaps then; the session is a clean one."""
    qos = min(2, family.publish_qos, family.granted_qos)
    node.client.connect(True)
    node.client.subscribe(topic, qos)
    came = arrived(node, lambda: crowd.publish_all(topic, BURST, 1, qos))
    assert sorted(came) == sorted(BURST)


# --- 31-3.3-RETAIN: a new subscriber gets the last one with the flag, a present one without ---


def test_c2b_retained_message_reaches_who_subscribes_later(node, other, topic):
    node.publish(topic, b"old", retain=True, qos=1)
    node.publish(topic, b"new", retain=True, qos=1)
    other.subscribe(topic, 1)
    assert other.wait(1) == [Got(topic, b"new", 1, True)]


def test_b2c_retained_message_carries_the_flag_only_for_a_new_subscriber(
    family, broker, node, other, topic
):
    node.client.subscribe(topic, 1)
    other.publish(topic, b"x", 1, retain=True)
    node.until(lambda: node.received)
    with Node(broker.port, family) as late:
        late.client.subscribe(topic, 1)
        late.until(lambda: late.received)
    assert node.received == [Got(topic, b"x", 1, False)]
    assert late.received == [Got(topic, b"x", 1, True)]


def test_b2c_retained_messages_are_found_by_a_wildcard_where_the_broker_looks(family, node, topic):
    node.publish(topic + "/a", b"x", retain=True, qos=1)
    node.client.subscribe(topic + "/+", 1)
    node.publish(topic + "/end", b"end", qos=1)
    node.until(lambda: b"end" in node.payloads)
    assert (b"x" in node.payloads) == family.retained_by_wildcard


def test_c2b_empty_retained_message_clears_the_topic(node, other, topic):
    node.publish(topic, b"x", retain=True, qos=1)
    node.publish(topic, b"", retain=True, qos=1)
    other.subscribe(topic, 1)
    node.publish(topic, b"end", qos=1)
    assert [got.payload for got in other.wait(1)] == [b"end"]


@pytest.mark.parametrize("is_cut", [True, False])
def test_will_is_published_where_the_connection_is_cut(family, broker, other, topic, is_cut):
    """31-3.1-WILL; 31-3.14: DISCONNECT takes the will back."""
    other.subscribe(topic, 1)
    with Proxy(broker.port) as proxy:
        node = Node(proxy.port if is_cut else broker.port, family)
        node.client.set_last_will(topic, b"gone", qos=1)
        node.client.connect()
        if is_cut:
            proxy.cut()
        else:
            node.client.disconnect()
            other.publish(topic, b"end", 1)
        assert other.wait(1) == [Got(topic, b"gone" if is_cut else b"end", 1, False)]
