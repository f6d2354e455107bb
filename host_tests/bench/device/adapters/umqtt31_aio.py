"""umqtt31.aio: one task receives, the other publishes."""

import asyncio
import socket

from tasks import Tasks

from umqtt31.aio import MQTTClient


class Adapter(Tasks):
    highest_qos = 2

    def __init__(self, port, window=1, timeout=10, keepalive=60, tls=None):
        super().__init__()
        self.address = socket.getaddrinfo("127.0.0.1", port)[0][-1]
        more = {"keepalive": keepalive, "connect_timeout": timeout, "ssl": tls}
        self.client = MQTTClient(
            "bench", "127.0.0.1", port, max_inflight=window, max_mqueue_len=4, **more
        )
        self.client.on_oversize = self.pass_over

    def connect(self, no_delay=True):
        self.run(self._connect(None if no_delay else self._open_with_nagle))

    def _open_with_nagle(self):
        stream = socket.socket()
        stream.connect(self.address)
        stream.setblocking(False)
        return stream

    async def _connect(self, stream):
        await self.client.connect(stream=stream)
        self.task = asyncio.create_task(self._receive())

    async def _receive(self):
        async for _ in self.client.messages():
            self.received += 1

    def publish(self, topic, payload, qos, count, window):
        self.run(self._publish(topic, payload, qos, count, window))

    async def _publish(self, topic, payload, qos, count, window):
        client = self.client
        for _ in range(count):
            await client.publish(topic, payload, False, qos)
            if window == 1 and qos:
                await client.flush()
        if qos:
            await client.flush()

    def is_connected(self):
        return self.client.is_connected

    def publish_for(self, topic, payload, qos, ms):
        return self.run(self._publish_for(topic, payload, qos, ms))

    async def _publish_for(self, topic, payload, qos, ms):
        await self.client.publish(topic, payload, False, qos)
        try:
            await asyncio.wait_for_ms(self.client.flush(), ms)
        except asyncio.TimeoutError:
            return False
        return True
