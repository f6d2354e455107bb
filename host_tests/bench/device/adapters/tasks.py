"""What adapters of asyncio clients have in common."""

import asyncio

from face import Face


class Tasks(Face):
    """An adapter but for its `client`, connect(), publish() and is_connected()."""

    def __init__(self):
        self.run = asyncio.get_event_loop().run_until_complete

    def subscribe(self, topic, qos):
        self.run(self.client.subscribe(topic, qos))

    def receive(self, count):
        self.run(self._until(self.received + count))

    async def _until(self, count):
        while self.received < count:
            await asyncio.sleep_ms(1)

    def pause(self, ms):
        self.run(self._sleep(ms))
        if not self.is_connected():
            raise OSError("no longer connected")

    async def _sleep(self, ms):
        await asyncio.sleep_ms(ms)
