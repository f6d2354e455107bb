"""Prints the heap bytes that each operation of umqtt31 allocates, collector off."""

import gc
import sys
import time

from umqtt31 import MQTTClient

COUNT = 50
PAYLOAD = bytes(64)

client = MQTTClient(
    "bench",
    "127.0.0.1",
    int(sys.argv[1]),
    max_inflight=COUNT,
    max_awaiting_rel=COUNT,
    queue_bytes=100 * COUNT,
)


def drain(_):
    for _ in range(3):  # a QoS 2 flow needs three times poll()
        time.sleep_ms(20)
        while client.poll():
            pass


def publish(qos):
    for _ in range(COUNT):
        client.publish(b"bench/reading", PAYLOAD, False, qos)


def ask(qos):
    client.publish(b"bench/give", b"%d %d 64" % (COUNT, qos))


def ping(_):
    for _ in range(COUNT):
        client.ping()
        time.sleep_ms(1)
        client.poll()


def idle(_):
    for _ in range(COUNT):
        client.poll()


def measure(name, prepare, operation, qos=0):
    for _is_warm in (False, True):
        prepare(qos)
        before = gc.mem_alloc()
        operation(qos)
        after = gc.mem_alloc()
        drain(qos)
    print("%s\t%g" % (name, (after - before) / COUNT))


client.on_message = lambda message: None
client.connect()
gc.collect()
gc.disable()
for qos in (0, 1, 2):
    measure("publish QoS %d" % qos, drain, publish, qos)
    measure("receive QoS %d" % qos, ask, drain, qos)
for qos in (1, 2):
    measure("acknowledgement QoS %d" % qos, publish, drain, qos)
measure("ping", drain, ping)
measure("idle poll", drain, idle)
