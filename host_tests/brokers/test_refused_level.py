"""Brokers that do not speak a level: the error says which one to try, and that one works."""

import re

import pytest

from host_tests.brokers import Aedes, Amqtt, BrokerProcess, Ejabberd, RabbitMQ3
from host_tests.brokers.clients import new_name
from host_tests.choice import class_for
from umqtt31 import MQTTClient, MQTTError

SPOKEN = {3: "MQTT 3.1", 5: "MQTT 5"}
USER = "guest"  # ejabberd wants one, RabbitMQ has this one


@pytest.mark.parametrize(
    ("make", "level"),
    [
        pytest.param(Amqtt, 3, id="amqtt-3"),
        pytest.param(Aedes, 5, id="aedes-5"),
        pytest.param(Ejabberd, 3, id="ejabberd-3", marks=pytest.mark.broker),
        pytest.param(RabbitMQ3, 5, id="rabbitmq3-5", marks=pytest.mark.broker),
    ],
)
def test_level_that_the_broker_refuses_is_answered_by_the_one_to_try(make, level):
    with make() as broker:
        with pytest.raises(MQTTError) as refused:
            new_client(broker, level).connect()
        said = str(refused.value)
        assert f"the CONNECT of {SPOKEN[level]}:" in said
        advised = int(re.search(r"try level=(\d)", said)[1])
        assert advised == 4
        client = new_client(broker, advised)
        client.connect()
        for qos in range(broker_qos(broker) + 1):
            check_there_and_back(client, qos)
        client.disconnect()


def new_client(broker: BrokerProcess, level: int) -> MQTTClient:
    name = new_name("level")
    make = class_for(level, {})
    return make(name, broker.host, broker.port, USER, USER, level=level, keepalive=60)


def broker_qos(broker: BrokerProcess) -> int:
    return 1 if isinstance(broker, RabbitMQ3) else 2


def check_there_and_back(client: MQTTClient, qos: int) -> None:
    """Twenty messages at `qos` to the client itself: each comes once, in order."""
    topic, received = new_name("back"), []
    client.on_message = lambda message: received.append((message.payload, message.qos))
    assert client.subscribe(topic, qos) == [qos]
    for number in range(20):
        client.publish(topic, b"%d" % number, qos=qos)
        assert client.flush(5000)
    for _ in range(500):
        if len(received) >= 20:
            break
        client.poll(10)
    assert received == [(b"%d" % number, qos) for number in range(20)]
