"""Receives COUNT messages at one QoS with umqtt31, sent one behind the other.

Arguments: port, count, QoS, and if wanted the level (else 3) and "used".
"""

import select
import socket
import sys

if "5" in sys.argv[4:]:
    from umqtt31.v5 import MQTTClient
else:
    from umqtt31 import MQTTClient


class Receiver:
    count = 0

    def on_message(self, message):
        self.count += 1


def run(client, stream, receiver, count):
    poller = select.poll()
    poller.register(stream, select.POLLIN)
    while receiver.count < count:
        poller.poll()  # asleep, so that waiting costs no instructions
        client.poll()


port, count, qos = [int(arg) for arg in sys.argv[1:4]]
levels = [int(arg) for arg in sys.argv[4:] if arg != "used"]
stream = socket.socket()
stream.connect(socket.getaddrinfo("127.0.0.1", port)[0][-1])
stream.setblocking(False)
client = MQTTClient(
    "bench", "127.0.0.1", max_awaiting_rel=2 * count, level=levels[0] if levels else 3
)
receiver = Receiver()
client.on_message = receiver.on_message
client.connect(stream=stream)
client.publish(b"bench/give", b"%d %d 64" % (count, qos))
if "used" in sys.argv:
    import used  # noqa: F401 - makes holes in the heap
run(client, stream, receiver, count)
if qos == 2:
    client.poll(100)
