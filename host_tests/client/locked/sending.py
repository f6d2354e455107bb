"""Publishing, the short and the long way, with the heap locked from `connect()` on.

Each function prepares everything, locks, and looks at the result unlocked.  MicroPython.
"""

import gc

from host_tests.client import wire
from host_tests.client.locked.bench import LONG, PAYLOAD, TOPIC, Bench, locked, poll_all
from umqtt31 import robust, simple

BELOW_5 = ("test_publish_with_the_faces_of_umqtt",)


def test_publish_at_each_qos():
    b = Bench()
    client = b.client
    with locked:
        client.publish(TOPIC, PAYLOAD)
        client.publish(TOPIC, PAYLOAD, True, 0)
        client.publish(TOPIC, PAYLOAD, False, 1)
        client.publish(TOPIC, PAYLOAD, qos=2)
    b.expect(
        wire.publish(TOPIC, PAYLOAD),
        wire.publish(TOPIC, PAYLOAD, retain=1),
        wire.publish(TOPIC, PAYLOAD, 1, 1),
        wire.publish(TOPIC, PAYLOAD, 2, 2),
    )


def test_publish_with_the_faces_of_umqtt():
    for make in (simple.MQTTClient, robust.MQTTClient):
        b = Bench(make=make)
        b.stream.feed(wire.puback(1) + wire.pubrec(2) + wire.pubcomp(2))
        client = b.client
        with locked:
            client.publish(TOPIC, PAYLOAD)
            client.publish(TOPIC, PAYLOAD, True, 1)
            client.publish(TOPIC, PAYLOAD, qos=2)
        b.expect(
            wire.publish(TOPIC, PAYLOAD),
            wire.publish(TOPIC, PAYLOAD, 1, 1, retain=1),
            wire.publish(TOPIC, PAYLOAD, 2, 2),
            wire.pubrel(2),
        )


def test_publish_from_every_kind_of_buffer():
    b = Bench()
    client = b.client
    kinds = (bytes, bytearray, memoryview)
    values = [(kind(TOPIC), kind(PAYLOAD)) for kind in kinds]
    with locked:
        for topic, payload in values:
            client.publish(topic, payload)
            client.publish(topic, payload, qos=1)
    assert b.client.inflight == 3
    sent = b.stream.take()
    assert sent.count(wire.publish(TOPIC, PAYLOAD)) == 3


def test_publish_and_receive_long_payloads():
    b = Bench(buffer_size=1500)
    client, stream = b.client, b.stream
    incoming = wire.publish(TOPIC, LONG, 1, 9)
    with locked:
        client.publish(TOPIC, LONG)
        client.publish(TOPIC, LONG, qos=2)
        stream.feed(incoming)
        poll_all(client)
    b.expect(wire.publish(TOPIC, LONG), wire.publish(TOPIC, LONG, 2, 1), wire.puback(9))
    assert b.handler.length == len(LONG) and bytes(b.handler.payload[: len(LONG)]) == LONG


def test_publish_when_the_stream_cannot_allocate():
    """The message is kept; poll() tells later, which may allocate."""
    b = Bench()
    error = MemoryError()

    def write(buf, off, n):
        raise error

    b.stream.write = write
    with locked:
        packet_id = b.client.publish(TOPIC, PAYLOAD, qos=1)
    assert packet_id == b.client.inflight == 1
    b.connect()
    assert b.client.stats.retried == b.client.inflight == 1


def test_publish_of_any_length_leaves_nothing_behind_on_an_unlocked_heap():
    """With the heap locked a way that allocates may be passed over; here it shows."""
    b = Bench(buffer_size=1500)
    client, stream = b.client, b.stream
    for n in (10, 130, 255, 256, 257, 300, 511, 512, 513, 1024):
        payload = bytes(n)
        for qos in (0, 1):
            stream.room = 8192
            stream.feed(wire.puback(client.publish(TOPIC, payload, qos=1)))
            poll_all(client)
            gc.collect()
            gc.disable()
            before = gc.mem_alloc()
            packet_id = client.publish(TOPIC, payload, qos=qos)
            after = gc.mem_alloc()
            gc.enable()
            assert after == before, (n, qos, after - before)
            stream.take()
            if qos:
                stream.feed(wire.puback(packet_id))
                poll_all(client)
