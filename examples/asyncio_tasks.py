"""asyncio: tasks that measure and obey, beside each other, over one client.

No task takes care of the connection: the client connects again by itself, and what is
published meanwhile waits.
"""

import asyncio

from umqtt31.aio import MQTTClient

SERVER = "broker.example"
PORT = 1883
PERIOD_MS = 10_000

period_ms = PERIOD_MS


async def measure(client):
    count = 0
    while True:
        count += 1
        await client.publish(b"home/desk-1/count", b"%d" % count, qos=1)
        await asyncio.sleep(period_ms / 1000)


async def obey(client):
    # A message is acknowledged when the body of the loop is done.
    global period_ms
    async for message in client.messages(b"home/desk-1/period"):
        try:
            period_ms = max(10, int(message.payload))
        except ValueError:
            print("not a number:", message.payload)


async def main():
    async with MQTTClient("desk-1", SERVER, PORT, level=4) as client:
        await client.subscribe(b"home/desk-1/period", qos=1)
        await asyncio.gather(measure(client), obey(client))


asyncio.run(main())
