"""Hostile inputs under MicroPython: only MQTTError may come out of the client.

Usage: micropython hostile_board.py FILE, one input per line in hexadecimal, as
`host_tests/fuzz` makes them: two bytes that choose the situation, then the broker's
bytes, here fed whole and one by one.  Prints what went wrong, and the count.
"""

import sys

from host_tests.client.dialogue import Dialogue
from host_tests.standin.packets import connack, no_properties
from host_tests.standin.stream import ScriptedStream
from umqtt31 import MQTTError


def run(situation, level, data, read_most):
    client = Dialogue(
        is_connected=False, level=level, buffer_size=64, max_inflight=3,
        max_mqueue_len=2, max_awaiting_rel=3, connect_timeout=1,
    ).client  # fmt: skip
    target = bytearray(64)
    client.on_message = lambda message: message.payload_into(target)
    client.on_oversize = lambda topic_len, payload_len: None
    hello = connack(0, 0, no_properties(level))
    stream = ScriptedStream(read_most=read_most)
    if not situation & 1:
        stream.feed(hello)
    stream.feed(data)
    try:
        client.connect(False, stream=stream)
        for k in range((situation & 6) >> 1):
            publish(client, 1 + k % 2)
        for _ in range(10 + len(data)):
            client.poll()
    except MQTTError:
        if client.is_connected:
            raise ValueError("still connected")
    accepted = client.inflight + client.queued
    stream = ScriptedStream()
    stream.feed(hello)
    client.connect(False, stream=stream)
    client.poll()
    if client.inflight + client.queued != accepted:
        raise ValueError("a message was lost")


LEVELS = (3, 4, 5, 5)  # as in `host_tests/fuzz`


def publish(client, qos):
    try:
        client.publish(b"t", b"x", qos=qos)
    except MQTTError as error:
        if error.code not in (0x95, 0x9A, 0x9B):  # what CONNACK said
            raise


count = 0
with open(sys.argv[1]) as file:
    for line in file:
        data = bytes.fromhex(line.strip())
        if len(data) < 2:
            continue
        count += 1
        for read_most in (0, 1):
            try:
                run(data[0], LEVELS[data[1] >> 4 & 3], data[2:], read_most)
            except Exception as error:
                print(line.strip(), read_most, repr(error))
print(count, "inputs")
