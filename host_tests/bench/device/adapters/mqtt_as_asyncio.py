"""mqtt_as on asyncio; a window is as many tasks that publish."""

import asyncio
import sys


class _Board:
    # What it asks a board for: an id and Wi-Fi.
    STA_IF = 0

    def __init__(self, _=None):
        pass

    def unique_id():
        return b"bench"

    def active(self, _=True):
        return True

    def connect(self, *_):
        pass

    def disconnect(self):
        pass

    def isconnected(self):
        return True


_Board.WLAN = _Board
sys.modules["machine"] = sys.modules["network"] = _Board

from mqtt_as import MQTTClient, config  # noqa: E402
from tasks import Tasks  # noqa: E402


class Adapter(Tasks):
    def __init__(self, port, window=1, timeout=None, keepalive=60, tls=None):
        super().__init__()
        config["client_id"] = "bench"
        config["server"] = "127.0.0.1"
        config["port"] = port
        config["keepalive"] = keepalive
        config["response_time"] = timeout or 10
        config["subs_cb"] = self.take
        if tls:
            config["ssl"] = True
        self.client = MQTTClient(config)

    def take(self, topic, payload, retained):
        self.received += 1

    def connect(self, no_delay=True):
        self.run(self.client.connect(quick=True))
        self.no_nagle(self.client._sock, no_delay)

    def publish(self, topic, payload, qos, count, window):
        each = [self._publish(topic, payload, qos, count // window) for _ in range(window)]
        self.run(self._all(each))

    async def _publish(self, topic, payload, qos, count):
        for _ in range(count):
            await self.client.publish(topic, payload, False, qos)

    async def _all(self, each):
        if len(each) == 1:
            await each[0]
        else:
            await asyncio.gather(*each)

    def is_connected(self):
        return self.client.isconnected()

    def near_wrap(self):
        for _ in range(65530):
            next(self.client.newpid)
