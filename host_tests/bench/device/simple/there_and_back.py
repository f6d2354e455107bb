"""Sends COUNT messages at QoS 1 through umqtt.simple and gets them all back."""

import sys

from umqtt.simple import MQTTClient

TOPIC = b"bench/echo"
PAYLOAD = bytes(64)


class Receiver:
    count = 0

    def on_message(self, topic, payload):
        self.count += 1


def run(client, receiver, count):
    for _ in range(count):
        client.publish(TOPIC, PAYLOAD, False, 1)
    while receiver.count < count:
        client.wait_msg()


port, count = [int(arg) for arg in sys.argv[1:3]]
receiver = Receiver()
client = MQTTClient("bench", "127.0.0.1", port)
client.set_callback(receiver.on_message)
client.connect()
client.subscribe(TOPIC, 1)
run(client, receiver, count)
print("done")
