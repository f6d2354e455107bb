"""Prints how many messages a second umqtt31 gets acknowledged at QoS 1 with a window."""

import socket
import sys
import time

from umqtt31 import MQTTClient

TOPIC = b"bench/reading"
PAYLOAD = bytes(64)


def run(client, count, window):
    sent = 0
    while sent < count or client.inflight:
        while sent < count and client.inflight + client.queued < window:
            client.publish(TOPIC, PAYLOAD, False, 1)
            sent += 1
        client.poll(100)


port, count, window = [int(arg) for arg in sys.argv[1:4]]
stream = socket.socket()
stream.connect(socket.getaddrinfo("127.0.0.1", port)[0][-1])
stream.setsockopt(6, 1, 1)  # TCP_NODELAY, which the unix port has no name for
stream.setblocking(False)
client = MQTTClient("bench", "127.0.0.1", max_inflight=window, max_mqueue_len=0)
client.connect(stream=stream)
start = time.ticks_us()
run(client, count, window)
print(count * 1000000 / time.ticks_diff(time.ticks_us(), start))
