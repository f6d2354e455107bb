"""Publishes COUNT messages at one QoS with umqtt31, each acknowledged before the next.

Arguments: port, count, QoS, and if wanted the level (else 3) and "used".
"""

import select
import socket
import sys

if "5" in sys.argv[4:]:
    from umqtt31.v5 import MQTTClient
else:
    from umqtt31 import MQTTClient

TOPIC = b"bench/reading"
PAYLOAD = bytes(64)


def run(client, stream, count, qos):
    poller = select.poll()
    poller.register(stream, select.POLLIN)
    client.publish(TOPIC, PAYLOAD)
    for _ in range(count):
        client.publish(TOPIC, PAYLOAD, False, qos)
        answers = qos  # PUBACK, or PUBREC and PUBCOMP
        while answers:
            poller.poll()  # asleep, so that waiting costs no instructions
            answers -= client.poll()


port, count, qos = [int(arg) for arg in sys.argv[1:4]]
levels = [int(arg) for arg in sys.argv[4:] if arg != "used"]
stream = socket.socket()
stream.connect(socket.getaddrinfo("127.0.0.1", port)[0][-1])
stream.setblocking(False)
client = MQTTClient("bench", "127.0.0.1", level=levels[0] if levels else 3)
client.connect(stream=stream)
if "used" in sys.argv:
    import used  # noqa: F401 - makes holes in the heap
run(client, stream, count, qos)
if client.inflight or client.queued:
    raise RuntimeError("not everything was acknowledged")
