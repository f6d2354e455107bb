"""Messages over TLS with a certificate of our own, the heap locked.  MicroPython.

Usage: micropython locked.py FILE; FILE holds JSON: [port, ssl].  Prints what was
received at each QoS, and what is left in flight.
"""

import json
import sys
import time

from micropython import heap_lock, heap_unlock

from host_tests.tls.steps import client_on

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


with open(sys.argv[1]) as file:
    port, ssl = json.load(file)
client = client_on(port, ssl, max_inflight=10, max_awaiting_rel=20)
counter = Counter()
client.on_message = counter.on_message
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
    while sum(counter.counts) < 3 * COUNT or client.inflight or client.stats.pings < 1:
        client.poll(50)
        if time.ticks_diff(time.ticks_ms(), start) > 20000:
            break
finally:
    heap_unlock()
print(counter.counts, client.inflight)
client.disconnect()
