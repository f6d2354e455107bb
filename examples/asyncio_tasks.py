"""asyncio: tasks that measure and obey, beside each other, over one client.

No task takes care of the connection: the client connects again by itself, and what is
published meanwhile waits, also before the first connection.
"""

import asyncio

from umqtt31 import MQTTError
from umqtt31.aio import MQTTClient
from umqtt31.wifi import WiFi

SSID = "name"
PASSWORD = "password"
SERVER = "broker.example"
PORT = 1883
PERIOD_MS = 10_000

period_ms = PERIOD_MS


async def measure(client):
    count = 0
    while True:
        count += 1
        try:
            client.publish_nowait(b"home/desk-1/count", b"%d" % count, qos=1)
        except MQTTError as error:  # the queue is full; publish() would wait for room
            print(error)
        await asyncio.sleep(period_ms / 1000)


async def obey(client):
    # A message is acknowledged when the body of the loop is done.
    global period_ms
    await client.connect(clean_session=False)  # however long it takes
    await client.subscribe(b"home/desk-1/period", qos=1)
    async for message in client.messages(b"home/desk-1/period"):
        try:
            period_ms = max(10, int(message.payload))
        except ValueError:
            print("not a number:", message.payload)


async def main():
    wifi = WiFi(SSID, PASSWORD)
    client = MQTTClient("desk-1", SERVER, PORT, level=3)
    await asyncio.gather(wifi.keep(), measure(client), obey(client))


asyncio.run(main())
