"""Publishes COUNT messages at one QoS with umqtt.simple, which waits for each answer."""

import sys

from umqtt.simple import MQTTClient

TOPIC = b"bench/reading"
PAYLOAD = bytes(64)


def run(client, count, qos):
    for _ in range(count):
        client.publish(TOPIC, PAYLOAD, False, qos)


port, count, qos = [int(arg) for arg in sys.argv[1:4]]
client = MQTTClient("bench", "127.0.0.1", port)
client.connect()
run(client, count, qos)
