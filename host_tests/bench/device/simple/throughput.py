"""Prints how many messages a second umqtt.simple gets acknowledged at QoS 1."""

import sys
import time

from umqtt.simple import MQTTClient

TOPIC = b"bench/reading"
PAYLOAD = bytes(64)


def run(client, count):
    for _ in range(count):
        client.publish(TOPIC, PAYLOAD, False, 1)


port, count = [int(arg) for arg in sys.argv[1:3]]
client = MQTTClient("bench", "127.0.0.1", port)
client.connect()
start = time.ticks_us()
run(client, count)
print(count * 1000000 / time.ticks_diff(time.ticks_us(), start))
