"""Sends COUNT messages at QoS 1 through umqtt31 with window 4 and gets them all back."""

import sys

from umqtt31 import MQTTClient

TOPIC = b"bench/echo"
PAYLOAD = bytes(64)


class Receiver:
    count = 0

    def on_message(self, message):
        self.count += 1


def run(client, receiver, count):
    sent = 0
    while sent < count or receiver.count < count or client.inflight:
        while sent < count and client.inflight + client.queued < 4:
            client.publish(TOPIC, PAYLOAD, False, 1)
            sent += 1
        client.poll(100)


port, count = [int(arg) for arg in sys.argv[1:3]]
client = MQTTClient(
    "bench",
    "127.0.0.1",
    port,
    buffer_size=128,
    max_inflight=4,
    max_mqueue_len=4,
    max_subscriptions=4,
)
receiver = Receiver()
client.on_message = receiver.on_message
client.connect()
client.subscribe(TOPIC, 1)
run(client, receiver, count)
print("done")
