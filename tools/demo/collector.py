"""Receives what the node publishes, straight at the broker, with a client not ours.

Eclipse Paho with a persistent session at QoS 2: it misses nothing while the broker
is restarted.  It records, and judges nothing.
"""

import threading
import time
from collections import defaultdict
from dataclasses import dataclass

import paho.mqtt.client as paho

_KEEPALIVE_S = 30


@dataclass(frozen=True)
class Arrival:
    """One message as it was handed over; `at_s` on the monotonic clock."""

    at_s: float
    topic: str
    qos: int
    payload: bytes


class Collector:
    """Subscribed to `prefix`/#; `arrivals` of readings and `statuses` by device, in the
    order they came."""

    def __init__(self, host: str, port: int, prefix: str):
        self.arrivals: list[Arrival] = []
        self.statuses: defaultdict[str, list[str]] = defaultdict(list)
        self._prefix = prefix
        self._subscribed = threading.Event()
        self._client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id=f"{prefix}-collector", clean_session=False
        )
        self._client.reconnect_delay_set(1, 1)
        self._client.on_connect = lambda client, *_: client.subscribe(f"{prefix}/#", qos=2)
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.on_message = self._on_message
        self._client.connect(host, port, _KEEPALIVE_S)
        self._client.loop_start()
        if not self._subscribed.wait(10):
            raise TimeoutError("the broker did not confirm the collector's subscription")

    def command(self, device: str, text: str) -> None:
        """Send the node a command at QoS 2; returns when the broker has taken it."""
        topic = f"{self._prefix}/{device}/command"
        self._client.publish(topic, text, qos=2).wait_for_publish(10)

    def wait_for_silence(self, quiet_s: float, timeout_s: float) -> None:
        """Wait until nothing has arrived for `quiet_s`, `timeout_s` at most."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            last_s = self.arrivals[-1].at_s if self.arrivals else 0.0
            if time.monotonic() - last_s > quiet_s:
                return
            time.sleep(0.05)

    def close(self) -> None:
        """Disconnect and end the client's thread."""
        self._client.disconnect()
        self._client.loop_stop()

    def _on_message(self, _client, _data, message):
        _, device, kind, *_ = message.topic.removeprefix(self._prefix).split("/")
        if kind == "status":
            self.statuses[device].append(message.payload.decode())
        elif kind == "reading":
            self.arrivals.append(
                Arrival(time.monotonic(), message.topic, message.qos, message.payload)
            )
