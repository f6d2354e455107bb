"""A client of a broker that is not ours, for what a test wants to hear and say."""

import queue
import threading
from typing import Any, Self

import paho.mqtt.client as paho

from host_tests.patience import SECONDS


class Ear:
    """Somebody else at the broker, who hears everything and can say something.

    With a name the broker keeps for it what it misses; `heard` goes on from one to the next.
    """

    def __init__(self, port: int, name: str = "", heard: queue.Queue | None = None) -> None:
        self.heard = queue.Queue() if heard is None else heard
        ready = threading.Event()
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, name, not name, reconnect_on_failure=False
        )
        self.client.on_connect = lambda client, *_: client.subscribe("#", qos=2)
        self.client.on_subscribe = lambda *_: ready.set()
        self.client.on_message = lambda client, data, message: self.heard.put(message)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        assert ready.wait(SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def next(self, topic: str) -> str:
        """-> payload of the next message to `topic`; others are passed over."""
        while True:
            message = self.heard.get(timeout=SECONDS)
            if message.topic == topic:
                return str(message.payload, "utf-8")

    def say(self, topic: str, payload: str, **options: Any) -> None:
        """Publish; at QoS 1 and 2 the broker has it on return."""
        self.client.publish(topic, payload, **options).wait_for_publish(SECONDS)
