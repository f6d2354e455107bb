"""Prints what the asyncio front does.  `tasks.py receive PORT COUNT`: messages a second
at QoS 0, then those of the waiting client.  `tasks.py publish PORT COUNT WINDOW`: those a
second that are acknowledged at QoS 1.  `tasks.py idle PORT SECONDS`: bytes of garbage in
all of them, then those of asyncio itself, with one task that sleeps as often."""

import asyncio
import gc
import sys
import time

from umqtt31 import MQTTClient
from umqtt31.aio import MQTTClient as AioClient

TOPIC = b"bench/reading"
PAYLOAD = bytes(64)
GIVE = b"bench/give"


def per_second(count, start):
    return count * 1000000 / time.ticks_diff(time.ticks_us(), start)


def receive_waiting(port, count):
    client = MQTTClient("waiting", "127.0.0.1", port, keepalive=0)
    client.connect()
    left = count
    start = 0

    def handler(message):
        nonlocal left, start
        if left == count:
            start = time.ticks_us()
        left -= 1

    client.on_message = handler
    client.publish(GIVE, b"%d 0 64" % count)
    while left:
        client.poll(100)
    return per_second(count, start)


async def receive_tasks(port, count):
    async with AioClient("tasks", "127.0.0.1", port, keepalive=0) as client:
        left = count
        start = 0
        await client.publish(GIVE, b"%d 0 64" % count)
        async for _message in client.messages():
            if left == count:
                start = time.ticks_us()
            left -= 1
            if not left:
                return per_second(count, start)


async def publish(port, count, window):
    async with AioClient(
        "tasks", "127.0.0.1", port, max_inflight=window, max_mqueue_len=0
    ) as client:
        start = time.ticks_us()
        for _ in range(count):
            await client.publish(TOPIC, PAYLOAD, qos=1)
        await client.flush()
        return per_second(count, start)


async def rest(seconds):
    # -> bytes allocated meanwhile; asyncio has been running for a while.
    await asyncio.sleep(1)
    gc.collect()
    gc.disable()
    before = gc.mem_alloc()
    await asyncio.sleep(seconds)
    before = gc.mem_alloc() - before
    gc.enable()
    return before


async def doze():
    while True:
        await asyncio.sleep_ms(500)


async def idle(port, seconds):
    dozing = asyncio.create_task(doze())
    bare = await rest(seconds)
    dozing.cancel()
    async with AioClient("tasks", "127.0.0.1", port, keepalive=60):
        return await rest(seconds), bare


what, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if what == "receive":
    print(asyncio.run(receive_tasks(port, count)), receive_waiting(port, count))
elif what == "publish":
    print(asyncio.run(publish(port, count, int(sys.argv[4]))))
else:
    print(*asyncio.run(idle(port, count)))
