"""What the asyncio front does with a real broker, one function each.

Called by `test_aio.py` under CPython and MicroPython; each returns numbers and bytes.
"""

import asyncio
import sys

import umqtt31
from host_tests.choice import class_for
from host_tests.standin.dice import Thrown
from umqtt31 import aio


class Broker:
    """Where the clients of one run connect; `topic` is that run's own."""

    def __init__(self, name, port, level):
        self.port, self.level = port, level
        self.topic = b"%s%d/%d" % (name.encode(), level, sys.maxsize & 0xFFFF)

    def client(self, name=b"", base=aio.extend, **options):
        make = base(class_for(self.level, ()))
        client_id = b"%s%s%d" % (self.topic[:4], name, self.level)
        return make(client_id, "127.0.0.1", self.port, level=self.level, **options)


async def take(client, count):
    """-> payloads of so many messages."""
    payloads = []
    async for message in client.messages():
        payloads.append(message.payload)
        if len(payloads) == count:
            message.done()
            return payloads


async def pass_messages(broker):
    """-> payloads at QoS 1 and 2, (granted, sent, in flight, queued), connected at the end."""
    # One task publishes at all QoS, another one answers each message in the body of its loop.
    # At QoS 0 what comes while the body waits may be given up, so it is sent alone.
    topic = broker.topic
    async with broker.client(max_inflight=2, max_mqueue_len=2) as client:
        granted = await client.subscribe([(topic + b"/1", 1), (topic + b"/2", 2)])

        async def publish(qos):
            for k in range(60):
                await client.publish(topic + b"/%d" % qos, b"%d" % k, qos=qos)

        publishing = [asyncio.create_task(publish(qos)) for qos in (1, 2)]
        payloads = {1: [], 2: []}
        async for message in client.messages():
            payloads[message.qos].append(message.payload)
            await client.publish(b"answers", message.payload, qos=1)
            if len(payloads[1]) + len(payloads[2]) == 120:
                message.done()
                break
        for one in publishing:
            await one
        await client.flush()
        await client.unsubscribe([topic + b"/1", topic + b"/2"])
        told = granted, client.stats.sent, client.inflight, client.queued
    return payloads[1], payloads[2], told, client.is_connected


async def refuse(broker):
    """-> payloads as they came, connections.  Every other message is refused; each comes once."""
    payloads = []
    async with broker.client() as client:
        await client.subscribe(broker.topic, 2)
        for k in range(20):
            await client.publish(broker.topic, b"%d" % k, qos=1 + k // 2 % 2)
        async for message in client.messages():
            payloads.append(message.payload)
            if len(payloads) % 2:
                message.refuse(0x97)
            if len(payloads) == 20:
                message.done()
                break
        await client.publish(broker.topic, b"last", qos=1)
        return payloads + await take(client, 1), client._link


async def share(broker):
    """-> payloads of each of two tasks that share one client's messages by filter."""
    payloads = {b"a": [], b"b": []}

    async def consume(client, name):
        async for message in client.messages(b"+/+/" + name):
            payloads[name].append(message.payload)

    async with broker.client(b"one") as one, broker.client(b"two") as two:
        await one.subscribe(broker.topic + b"/#", 1)
        loops = [asyncio.create_task(consume(one, name)) for name in (b"a", b"b")]
        for k in range(40):
            await two.publish(broker.topic + (b"/a" if k & 1 else b"/b"), b"%d" % k, qos=1)
        await two.flush()
        while len(payloads[b"a"]) + len(payloads[b"b"]) < 40:
            await asyncio.sleep(0.01)
    for loop in loops:
        await loop
    return payloads[b"a"], payloads[b"b"]


async def lose(broker):
    """-> payloads of what was published without a connection, reconnects."""
    with Thrown([umqtt31]):  # no pause before an attempt to connect
        async with broker.client() as client:
            await client.subscribe(broker.topic, 1)
            reading = asyncio.create_task(take(client, 1))
            # The broker closes the connection of whom another one takes the name of.
            other = broker.client(base=lambda make: make)
            other.connect()
            while client.is_connected:
                await asyncio.sleep(0.01)
            other.disconnect()
            await client.publish(broker.topic, b"kept", qos=1)
            await client.flush()
            return await reading, client.stats.reconnects


def run(port, name, level, *args):
    """-> what the function of that name returned."""
    return asyncio.run(globals()[name](Broker(name, port, level), *args))
