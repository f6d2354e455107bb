"""Receives COUNT messages at one QoS with umqtt.simple, sent one behind the other."""

import sys

from umqtt.simple import MQTTClient


class Receiver:
    count = 0

    def on_message(self, topic, msg):
        self.count += 1


port, count, qos = [int(arg) for arg in sys.argv[1:4]]
client = MQTTClient("bench", "127.0.0.1", port)
receiver = Receiver()
client.set_callback(receiver.on_message)
client.connect()
client.publish(b"bench/give", b"%d %d 64" % (count, qos))
while receiver.count < count:
    client.wait_msg()
