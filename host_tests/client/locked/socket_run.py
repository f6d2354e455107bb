"""Messages through a real broker over a real socket, the heap locked.  MicroPython.

Usage: micropython socket_run.py PORT CLIENT_ID LEVEL.  Prints what was received at
each QoS, and what is left in flight.
"""

import sys
import time

from micropython import heap_lock, heap_unlock

from umqtt31 import MQTTClient

COUNT = 20
TOPICS = (b"locked/0", b"locked/1", b"locked/2")
PAYLOAD = b"x" * 100


class Counter:
    def __init__(self):
        self.counts = [0, 0, 0]
        self.buf = bytearray(200)

    def on_message(self, message):
        if message.payload_into(self.buf) == len(PAYLOAD) and message.topic_is(
            TOPICS[message.qos]
        ):
            self.counts[message.qos] += 1


client = MQTTClient(
    sys.argv[2],
    "127.0.0.1",
    int(sys.argv[1]),
    level=int(sys.argv[3]),
    max_inflight=10,
    max_awaiting_rel=20,
)
counter = Counter()
client.on_message = counter.on_message
client.connect()
client.subscribe(b"locked/#", 2)
start = time.ticks_ms()
heap_lock()
try:
    for _ in range(COUNT):
        for qos in range(3):
            client.publish(TOPICS[qos], PAYLOAD, qos=qos)
            client.poll()
        while client.queued:
            client.poll(10)
    client.ping()
    while sum(counter.counts) < 3 * COUNT or client.inflight:
        client.poll(50)
        if time.ticks_diff(time.ticks_ms(), start) > 20000:
            break
finally:
    heap_unlock()
print(counter.counts, client.inflight)
client.disconnect()
