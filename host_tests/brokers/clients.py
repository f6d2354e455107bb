"""The two ends of a broker in these tests: umqtt31, and paho-mqtt, which is not ours."""

import itertools
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from paho.mqtt.client import Client as Paho
from paho.mqtt.client import MQTTv31, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion

from host_tests.brokers.families import Family
from host_tests.choice import class_for
from host_tests.patience import SECONDS
from umqtt31 import MQTTError

_numbers = itertools.count(1)


class Got(NamedTuple):
    """A message as its receiver saw it."""

    topic: str
    payload: bytes
    qos: int
    is_retained: bool


def new_name(kind: str) -> str:
    """A client id or topic that no other test uses; at most 23 characters."""
    return f"{kind}{next(_numbers)}"


class Node:
    """umqtt31's client at the family's level, with all that its handler saw in `received`."""

    def __init__(self, port: int, family: Family, client_id: str | None = None, **options) -> None:
        options = {
            "retry_interval": 0,
            "keepalive": 60,
            "level": family.level,
            "user": family.user,
            "password": family.user,
        } | options
        make = class_for(options["level"], options)
        self.client = make(
            new_name("node") if client_id is None else client_id, "127.0.0.1", port, **options
        )
        self.client.on_message = self._keep
        self.received: list[Got] = []

    def _keep(self, message) -> None:
        got = Got(message.topic.decode(), message.payload, message.qos, message.retain)
        self.received.append(got)

    def __enter__(self) -> "Node":
        self.client.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.disconnect()

    @property
    def payloads(self) -> list[bytes]:
        return [got.payload for got in self.received]

    def until(self, is_reached: Callable[[], object]) -> None:
        """Poll, and connect again when the connection is lost, until it is so."""
        end = time.monotonic() + SECONDS
        while not is_reached():
            assert time.monotonic() < end, f"not reached; received {len(self.received)}"
            self.step()

    def step(self) -> None:
        """Poll for a moment; a lost connection is opened again, session and all."""
        try:
            if self.client.is_connected:
                self.client.poll(5)
            else:
                self.client.connect(False)
        except MQTTError:
            time.sleep(0.02)

    def publish(self, topic: str, payload: bytes, **options) -> None:
        """Publish and wait until the broker has answered all."""
        self.client.publish(topic, payload, **options)
        assert self.client.flush(SECONDS * 1000)


class Watched(ABC):
    """Opens links to a broker, one after the other, as `connect(stream=…)` takes it."""

    def __init__(self, broker: Any) -> None:
        self._broker = broker

    def __call__(self) -> "Watched":
        self._link = link = socket.create_connection(("127.0.0.1", self._broker.port))
        link.setblocking(False)
        self.close = link.close
        return self

    def readinto(self, buf: bytearray, n: int) -> int | None:
        n = self._link.readinto(buf, n)
        if n:
            self.saw(buf[0], False)
        return n

    def write(self, buf: bytearray, off: int, n: int) -> int | None:
        self.saw(buf[off], True)
        n = self._link.write(buf, off, n)
        if n:
            self.saw(buf[off], False)
        return n

    @abstractmethod
    def saw(self, first: int, is_before: bool) -> None:
        """What a test does at a packet that was read, is to be written (`is_before`) or was
        written: `first` is its first byte."""


class Other:
    """paho-mqtt at the lowest level there is, in a thread, with what it got in `received`."""

    def __init__(
        self, port: int, family: Family, *, is_clean: bool = True, window: int = 10
    ) -> None:
        self.received: list[Got] = []
        self._changed = threading.Condition()
        self._answered: set[int] = set()
        self._filters: list[tuple[str, int]] = []
        self._connections = 0
        self._used = 1  # of them, when the next one is asked for
        self._resubscribed: set[int] = set()
        self._paho = paho = Paho(
            CallbackAPIVersion.VERSION2,
            new_name("other"),
            clean_session=is_clean,
            protocol=MQTTv31 if 3 in family.levels else MQTTv311,
        )
        if family.user is not None:
            paho.username_pw_set(family.user, family.user)
        self._port = port
        paho.max_queued_messages_set(0)
        paho.max_inflight_messages_set(window)
        paho.reconnect_delay_set(0.05, 0.2)
        paho.on_message = self._on_message
        paho.on_subscribe = lambda _c, _u, mid, *_: self._note(mid)
        paho.on_unsubscribe = lambda _c, _u, mid, *_: self._note(mid)
        paho.on_connect = self._on_connect

    def _on_message(self, _client, _userdata, message) -> None:
        got = Got(message.topic, message.payload, message.qos, bool(message.retain))
        with self._changed:
            self.received.append(got)
            self._changed.notify_all()

    def _on_connect(self, *_: object) -> None:
        # Again on each connection: the broker may have forgotten them.
        mids = {self._paho.subscribe(topic, qos)[1] or 0 for topic, qos in self._filters}
        with self._changed:
            self._resubscribed = mids
            self._connections += 1
            self._changed.notify_all()

    def _note(self, mid: int) -> None:
        with self._changed:
            self._answered.add(mid)
            self._changed.notify_all()

    def __enter__(self) -> "Other":
        self._paho.connect("127.0.0.1", self._port)
        self._paho.loop_start()
        self.wait_for_connection(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._paho.disconnect()
        self._paho.loop_stop()

    @property
    def payloads(self) -> list[bytes]:
        return [got.payload for got in self.received]

    def subscribe(self, topic: str, qos: int = 0) -> None:
        """Subscribe, and return when the broker has answered."""
        _, mid = self._paho.subscribe(topic, qos)
        self._wait(lambda: mid in self._answered)
        self._filters.append((topic, qos))

    def publish(self, topic: str, payload: bytes, qos: int = 0, retain: bool = False) -> None:
        """Publish, and return when the broker has answered."""
        self._paho.publish(topic, payload, qos, retain).wait_for_publish(SECONDS)

    def publish_all(self, topic: str, payloads: list[bytes], *qos: int) -> None:
        """Publish all, at each `qos` in turn, and return when the broker has answered all."""
        levels = itertools.cycle(qos)
        infos = [self._paho.publish(topic, payload, next(levels)) for payload in payloads]
        for info in infos:
            info.wait_for_publish(SECONDS)

    def wait(self, count: int) -> list[Got]:
        """Wait until `count` messages are there -> all that are."""
        self._wait(lambda: len(self.received) >= count)
        return self.received

    def wait_for_all(self, payloads: set[bytes]) -> None:
        """Wait until all `payloads` are there, whatever else is."""
        self._wait(lambda: payloads <= set(self.payloads))

    def wait_for_connection(self, number: int) -> None:
        """Wait until it has connected so many times and its filters are confirmed again."""
        self._wait(lambda: self._connections >= number and self._resubscribed <= self._answered)

    def wait_for_next_connection(self) -> None:
        """Wait until it has noticed that its connection is lost, and has another one."""
        self._wait(lambda: self._connections > self._used)
        self.wait_for_connection(self._used + 1)
        self._used = self._connections

    def _wait(self, is_reached: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(is_reached, SECONDS), f"{len(self.received)} came"
