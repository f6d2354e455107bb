"""Does each kind of work COUNT times and prints its name and the heap bytes that one took.

Usage: micropython -m main ADAPTER PORT COUNT HOW.  HOW is "heap": without the collector;
or "count": the collector at work, each kind between two calls of math.erf(), at which
callgrind begins a new count.
"""

import gc
import math
import sys
import time

TOPIC = b"bench/reading"
GIVE = b"bench/give"
PAYLOAD = bytes(64)
BURST = 100
WINDOW = 4  # that is possible; one message is sent at a time


class NoCollector:
    def collect():
        pass


def nothing(client, qos, n):
    pass


def publish(client, qos, n):
    client.publish(TOPIC, PAYLOAD, qos, n, 1)


def receive(client, qos, n):
    for _ in range(n // BURST or 1):
        client.publish(GIVE, order, 0, 1, 1)
        client.receive(min(n, BURST))


def measure(name, work, client, qos):
    # Twice as many once more, so that what is made once for all of them is no part of it.
    allocated = []
    for n in (count, 2 * count) if is_heap else (count,):
        gc.collect()
        before = gc.mem_alloc()
        math.erf(0)
        work(client, qos, n)
        math.erf(0)
        allocated.append(gc.mem_alloc() - before)
    print("%s\t%g" % (name, (allocated[-1] - allocated[0]) / count))


port, count = int(sys.argv[2]), int(sys.argv[3])
is_heap = sys.argv[4] == "heap"
client = __import__(sys.argv[1]).Adapter(port, WINDOW)
client.connect()
for qos in range(client.highest_qos + 1):  # what is made on first use
    client.publish(TOPIC, PAYLOAD, qos, 3, 1)
if is_heap:
    gc.disable()
    for name, module in sys.modules.items():  # who collects by itself
        if hasattr(module, "gc") and name not in ("main", "__main__", sys.argv[1]):
            module.gc = NoCollector
measure("nothing", nothing, client, 0)
for qos in range(client.highest_qos + 1):
    measure("publish QoS %d" % qos, publish, client, qos)
    time.sleep_ms(20)
for qos in range(client.highest_qos + 1):
    order = b"%d %d 64" % (min(count, BURST), qos)
    measure("receive QoS %d" % qos, receive, client, qos)
