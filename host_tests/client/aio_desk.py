"""What the asyncio front does with a real broker, one function each.

Run by `test_aio.py` under CPython (imported) and under MicroPython (as a script:
micropython aio_desk.py FUNCTION PORT LEVEL); each returns numbers and bytes.
"""

import asyncio
import sys

import umqtt31
from host_tests.choice import class_for
from host_tests.standin.dice import Thrown
from umqtt31 import aio


def _new_client(name, port, level, **options):
    make = aio.extend(class_for(level, ()))
    return make(b"%s%d" % (name, level), "127.0.0.1", int(port), level=level, **options)


async def _pass_messages(port, level):
    # One task publishes at all QoS, another one answers each message in the body of its loop.
    # At QoS 0 what comes while the body waits may be given up, so it is sent alone.
    topic = b"aio%d/%d" % (level, sys.maxsize & 0xFFFF)
    async with _new_client(b"aio", port, level, max_inflight=2, max_mqueue_len=2) as client:
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


def pass_messages(port, level):
    """-> payloads at QoS 1 and 2, (granted, sent, in flight, queued), connected at the end."""
    return asyncio.run(_pass_messages(port, level))


async def _refuse(port, level):
    # Every other message is refused; each comes once, on one connection.
    topic = b"refuse%d/%d" % (level, sys.maxsize & 0xFFFF)
    payloads = []
    async with _new_client(b"refuse", port, level) as client:
        await client.subscribe(topic, 2)
        for k in range(20):
            await client.publish(topic, b"%d" % k, qos=1 + k // 2 % 2)
        async for message in client.messages():
            payloads.append(message.payload)
            if len(payloads) % 2:
                message.refuse(0x97)
            if len(payloads) == 20:
                message.done()
                break
        await client.publish(topic, b"last", qos=1)
        async for message in client.messages():
            payloads.append(message.payload)
            message.done()
            break
        return payloads, client._link


def refuse(port, level):
    """-> payloads as they came, connections."""
    return asyncio.run(_refuse(port, level))


async def _share(port, level):
    # Two clients in one loop; two tasks of one share its messages by filter.
    topic = b"share%d/%d" % (level, sys.maxsize & 0xFFFF)
    payloads = {b"a": [], b"b": []}

    async def consume(client, name):
        async for message in client.messages(b"+/+/" + name):
            payloads[name].append(message.payload)

    async with _new_client(b"one", port, level) as one, _new_client(b"two", port, level) as two:
        await one.subscribe(topic + b"/#", 1)
        loops = [asyncio.create_task(consume(one, name)) for name in (b"a", b"b")]
        for k in range(40):
            await two.publish(topic + (b"/a" if k & 1 else b"/b"), b"%d" % k, qos=1)
        await two.flush()
        while len(payloads[b"a"]) + len(payloads[b"b"]) < 40:
            await asyncio.sleep(0.01)
    for loop in loops:
        await loop
    return payloads[b"a"], payloads[b"b"]


def share(port, level):
    """-> payloads of each of two tasks."""
    return asyncio.run(_share(port, level))


async def _lose(port, level):
    topic = b"lose%d/%d" % (level, sys.maxsize & 0xFFFF)
    async with _new_client(b"lose", port, level) as client:
        await client.subscribe(topic, 1)
        reading = asyncio.create_task(client.messages().__anext__())
        # The broker closes the connection of whom another one takes the name of.
        other = class_for(level, ())(b"lose%d" % level, "127.0.0.1", int(port), level=level)
        other.connect()
        while client.is_connected:
            await asyncio.sleep(0.01)
        other.disconnect()
        await client.publish(topic, b"kept", qos=1)
        await client.flush()
        message = await reading
        message.done()
        return message.payload, client.stats.reconnects


def lose(port, level):
    """-> payload of what was published without a connection, reconnects."""
    with Thrown([umqtt31]):  # no pause before an attempt to connect
        return asyncio.run(_lose(port, level))


async def _cancel(port, level):
    topic = b"cancel%d/%d" % (level, sys.maxsize & 0xFFFF)
    accepted = []
    arrived = []

    async def publish(client, k):
        await client.publish(topic, b"%d" % k * 50, qos=1 + k % 2)
        accepted.append(b"%d" % k * 50)

    async def consume(client):
        async for message in client.messages():
            arrived.append(message.payload)

    async with _new_client(b"from", port, level, max_inflight=1, max_mqueue_len=0) as one:
        async with _new_client(b"to", port, level) as other:
            await other.subscribe(topic, 2)
            consuming = asyncio.create_task(consume(other))
            for k in range(40):
                publishing = asyncio.create_task(publish(one, k))
                for _ in range(k % 4):  # 0: before it began
                    await asyncio.sleep(0)
                publishing.cancel()
            await one.flush()
            await one.publish(topic, b"last", qos=1)
            while b"last" not in arrived:
                await asyncio.sleep(0.01)
    await consuming
    return arrived[:-1] == accepted, len(accepted), one.stats.sent


def cancel(port, level):
    """-> arrived just what was accepted, how many of 40 were, messages sent."""
    return asyncio.run(_cancel(port, level))


def _journal(path):
    from umqtt31 import FileBlockDevice, Journal

    return Journal(FileBlockDevice(path, 6))


async def _keep(port, level, path):
    # Accepted without a connection, by a client that then is no more.
    topic = b"keep%d/%d" % (level, sys.maxsize & 0xFFFF)
    first = _new_client(b"keep", port, level, store=_journal(path))
    for k in range(6):
        first.publish_nowait(topic, b"%d" % k, qos=1 + k % 2)
    payloads = []
    async with _new_client(b"heir", port, level) as heir:
        await heir.subscribe(topic, 2)
        second = _new_client(b"keep", port, level, store=_journal(path))
        queued = second.queued
        await second.connect(False)
        await second.publish(topic, b"more", qos=2)
        async for message in heir.messages():
            payloads.append(message.payload)
            if len(payloads) == 7:
                message.done()
                break
        await second.flush()
        await second.disconnect()
    third = _new_client(b"keep", port, level, store=_journal(path))
    return queued, payloads, third.queued


def keep(port, level, path):
    """-> queued after a reset, payloads that arrived, queued after the next one."""
    return asyncio.run(_keep(port, level, path))


if __name__ == "__main__":
    print(repr(globals()[sys.argv[1]](sys.argv[2], int(sys.argv[3]), *sys.argv[4:])))
