"""Prints the heap bytes that each operation of umqtt.simple allocates, collector off."""

import gc
import sys
import time

from umqtt.simple import MQTTClient

COUNT = 50
PAYLOAD = bytes(64)

client = MQTTClient("bench", "127.0.0.1", int(sys.argv[1]))


def rest(_):
    time.sleep_ms(20)


def publish(qos):
    for _ in range(COUNT):
        client.publish(b"bench/reading", PAYLOAD, False, qos)


def ask(qos):
    client.publish(b"bench/give", b"%d %d 64" % (COUNT, qos))


def receive(_):
    for _ in range(COUNT):
        client.wait_msg()


def ping(_):
    for _ in range(COUNT):
        client.ping()
        client.wait_msg()


def idle(_):
    for _ in range(COUNT):
        client.check_msg()


def measure(name, prepare, operation, qos=0):
    for _is_warm in (False, True):
        prepare(qos)
        before = gc.mem_alloc()
        operation(qos)
        after = gc.mem_alloc()
    print("%s\t%g" % (name, (after - before) / COUNT))


client.set_callback(lambda topic, payload: None)
client.connect()
gc.collect()
gc.disable()
for qos in (0, 1):
    measure("publish QoS %d" % qos, rest, publish, qos)
    measure("receive QoS %d" % qos, ask, receive, qos)
measure("ping", rest, ping)
measure("idle poll", rest, idle)
