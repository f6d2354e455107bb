"""Messages of each QoS to a broker and back, the heap locked."""

import time

from host_tests.choice import class_for
from micropython import heap_lock, heap_unlock

_COUNT = 20  # of each QoS
_MOST_MS = 20_000
_TOPICS = (b"locked/0", b"locked/1", b"locked/2")
_PAYLOAD = b"x" * 100


class _Counter:
    def __init__(self):
        self.counts = [0, 0, 0]
        self.buf = bytearray(200)

    def on_message(self, message):
        if message.payload_into(self.buf) == len(_PAYLOAD) and message.topic_is(
            _TOPICS[message.qos]
        ):
            self.counts[message.qos] += 1


def play(client):
    """-> how many came back at each QoS, and what is left in flight; `client` is connected."""
    counter = _Counter()
    client.on_message = counter.on_message
    client.subscribe(b"locked/#", 2)
    start = time.ticks_ms()
    heap_lock()
    try:
        for _ in range(_COUNT):
            for qos in range(3):
                client.publish(_TOPICS[qos], _PAYLOAD, qos=qos)
                client.poll()
            while client.queued:
                client.poll(10)
        client.ping()
        while sum(counter.counts) < 3 * _COUNT or client.inflight or client.stats.pings < 1:
            client.poll(50)
            if time.ticks_diff(time.ticks_ms(), start) > _MOST_MS:
                break
    finally:
        heap_unlock()
    inflight = client.inflight
    client.disconnect()
    return counter.counts, inflight


def run(port, level):
    """-> the same, of a client at this level."""
    options = {"queue_bytes": 4096, "max_inflight": 10, "max_awaiting_rel": 20}
    client = class_for(level, {})("locked", "127.0.0.1", port, level=level, **options)
    client.connect()
    return play(client)
