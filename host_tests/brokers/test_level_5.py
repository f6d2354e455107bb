"""Level 5 with real brokers: what they say and pass on."""

import time

import pytest

from host_tests.brokers.clients import Node
from host_tests.brokers.conftest import of_families
from umqtt31 import MQTTError
from umqtt31.properties import encode
from umqtt31.v5 import NO_LOCAL

IMPLEMENTATION_SPECIFIC_ERROR = 0x83

pytestmark = pytest.mark.parametrize("family", of_families(levels=(5,)), indirect=True)


def test_messages_bring_their_properties_at_each_qos(family, broker, topic):
    qualities = tuple(range(min(family.publish_qos, family.granted_qos) + 1))
    topic = topic.encode()
    node = Node(broker.port, family)
    node.client.v5.topic_aliases = 1
    seen = []

    def on_message(message):
        age_s = message.message_expiry_interval
        seen.append([*(getattr(message, name) for name in names), 0 < age_s <= 60])

    names = ["qos", "topic", "payload", "content_type", "response_topic", "correlation_data"]
    names += ["user_property"]
    node.client.on_message = on_message
    with node:
        assert node.client.subscribe(topic, 2) == [qualities[-1]]
        given = encode(
            content_type="c",
            response_topic="answer",
            correlation_data=b"\x00",
            user_property=(("k", "v"),),
        )
        for qos in qualities:
            node.client.publish(topic, b"x", qos=qos, max_age=60, properties=given)
        node.until(lambda: len(seen) == len(qualities))
        assert node.client.flush(5000)
    said = [topic, b"x", b"c", b"answer", b"\x00", [(b"k", b"v")], True]
    assert sorted(seen) == [[qos, *said] for qos in qualities]


def test_subscription_brings_its_identifier_where_the_broker_has_them(node, topic):
    seen = []
    node.client.on_message = lambda message: seen.append(message.subscription_identifier)
    if node.client.v5.connack.subscription_identifier_available == 0:
        node.client.subscribe(topic, 1)
        expected = []
    else:
        node.client.subscribe(topic, 1, encode(subscription_identifier=7))
        expected = [7]
    node.publish(topic, b"x", qos=1)
    node.until(lambda: seen)
    assert seen == [expected]


def test_session_that_is_kept_goes_on_and_an_expired_one_does_not(family, broker, topic):
    client = Node(broker.port, family).client
    assert client.connect(False) is False
    client.subscribe(topic, 1 | NO_LOCAL)
    client.publish(topic, b"own", qos=1)
    assert client.flush(5000)
    client.disconnect()
    assert client.connect(False) is True
    client.v5.leave_properties = encode(session_expiry_interval=0)
    client.disconnect()
    is_kept = True
    for _ in range(100):
        try:
            is_kept = client.connect(False)
            client.disconnect()
        except MQTTError as error:  # RabbitMQ ends it in the background, and refuses meanwhile
            assert error.code == 512 + IMPLEMENTATION_SPECIFIC_ERROR
        if not is_kept:
            break
        time.sleep(0.1)
    assert not is_kept
    assert client.stats.received == 0


def test_client_without_an_id_keeps_the_one_that_it_got(family, broker, topic):
    client = Node(broker.port, family, "").client
    assert client.connect(False) is False
    client.subscribe(topic, 1)  # without one, RabbitMQ keeps no session
    name = client.v5.assigned_client_id
    client.disconnect()
    assert name and client.connect(False) is True
    assert client.v5.assigned_client_id == name
    client.disconnect()


def test_message_that_waited_longer_than_its_age_in_the_broker_does_not_come(
    family, broker, node, topic
):
    """The clock is the broker's, so this one takes its two seconds."""
    node.client.connect(False)
    node.client.subscribe(topic, 1)
    node.client.disconnect()
    with Node(broker.port, family) as sender:
        sender.publish(topic, b"for ever", qos=1)  # ejabberd looks at those behind the first
        sender.publish(topic, b"short", qos=1, max_age=1)
        sender.publish(topic, b"long", qos=1, max_age=60)
    time.sleep(2.1)
    node.client.connect(False)
    node.until(lambda: b"long" in node.payloads)
    assert node.payloads == [b"for ever", b"long"]


def test_messages_in_flight_are_no_more_than_the_broker_takes(family, broker, other, topic):
    """MQTT-3.3.4-7, with a window of ours far above it; all of them arrive."""
    sent = [b"%d" % number for number in range(200)]
    other.subscribe(topic, 1)
    with Node(
        broker.port, family, max_inflight=200, max_mqueue_len=200, queue_bytes=20000
    ) as node:
        for payload in sent:
            node.client.publish(topic, payload, qos=1)
        most = node.client.v5.connack.receive_maximum or 65535
        assert node.client.inflight <= most
        node.until(lambda: not node.client.inflight + node.client.queued)
        other.wait(len(sent))
        assert other.payloads == sent
        assert not node.client.stats.reconnects
