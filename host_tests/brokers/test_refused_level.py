"""Brokers that do not speak a level: the error says which one to try, and that one works."""

import re

import pytest

from host_tests.brokers import Amqtt
from host_tests.brokers.clients import Node, new_name
from host_tests.brokers.families import FAMILIES, Family
from umqtt31 import MQTTError

SPOKEN = {3: "MQTT 3.1", 5: "MQTT 5"}
SENT = [b"%d" % number for number in range(20)]


@pytest.mark.parametrize(
    ("family", "level"),
    [
        pytest.param(Family(Amqtt, levels=(4,)), 3, id="amqtt-3"),
        pytest.param(FAMILIES["aedes"], 5, id="aedes-5"),
        pytest.param(FAMILIES["ejabberd"], 3, id="ejabberd-3", marks=pytest.mark.broker),
        pytest.param(FAMILIES["rabbitmq3"], 5, id="rabbitmq3-5", marks=pytest.mark.broker),
    ],
)
def test_level_that_the_broker_refuses_is_answered_by_the_one_to_try(family, level):
    with family.make() as broker:
        with pytest.raises(MQTTError) as refused:
            Node(broker.port, family, level=level).client.connect()
        said = str(refused.value)
        assert f"the CONNECT of {SPOKEN[level]}:" in said
        advised = int(re.search(r"try level=(\d)", said)[1])
        assert advised == 4
        with Node(broker.port, family, level=advised) as node:
            for qos in range(family.publish_qos + 1):
                check_there_and_back(node, qos)


def check_there_and_back(node, qos):
    """Messages at `qos` to the client itself: each comes once, in order."""
    topic = new_name("back")
    node.received.clear()
    assert node.client.subscribe(topic, qos) == [qos]
    for payload in SENT:
        node.publish(topic, payload, qos=qos)
    node.until(lambda: len(node.received) >= len(SENT))
    assert [(got.payload, got.qos) for got in node.received] == [(one, qos) for one in SENT]
