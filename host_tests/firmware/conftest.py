"""The firmware's modules under CPython, and the fakes that its tests hand in."""

import sys
from types import SimpleNamespace

import pytest

from host_tests.standin.clock import Clock
from tools.project import ROOT

for folder in ("lib", "firmware"):
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))

import umqtt31  # noqa: E402, F401 - puts MicroPython's names in place
from host_tests.firmware.node_bench import Bench  # noqa: E402 - needs the folders above


class FakeMessage:
    """A received message with a payload, as the client hands it to its handler."""

    def __init__(self, payload, retain=False, topic=b"sensors/node-7/command"):
        self.payload_len = len(payload)
        self.payload = payload
        self.retain = retain
        self._topic = topic

    def topic_is(self, topic):
        return topic == self._topic


class FakeClient:
    """The client's face as far as the node uses it; the test plays the broker.

    `on_poll(timeout_ms)` and `on_publish(topic, msg)` are the test's, before anything is done.
    """

    on_poll = on_publish = staticmethod(lambda *_: None)

    def __init__(self, clock):
        self.clock = clock
        self.is_connected = False
        self.can_connect = True
        self.inflight = self.queued = 0
        self.room = 100
        self.error = None  # raised by the next poll(), closing the connection
        self.last_error = None
        self.on_message = None
        self.calls = []
        self.published = []
        self.to_deliver = []
        self.stats = SimpleNamespace(reconnects=0, dropped=0)

    def set_last_will(self, topic, msg, retain, qos):
        self.calls.append(("will", topic, msg, retain, qos))

    def subscribe(self, topic, qos):
        self.calls.append(("subscribe", topic, qos))

    def reconnect(self, timeout_ms):
        self.calls.append(("reconnect", timeout_ms))
        if self.can_connect:
            self.is_connected = True
        else:
            self.last_error = self.last_error or OSError("no broker")
            self.clock.sleep_ms(timeout_ms)
        return self.is_connected

    def next_due_ms(self):
        return 60000

    def poll(self, timeout_ms):
        self.on_poll(timeout_ms)
        if self.error:
            error, self.error = self.error, None
            self.is_connected = isinstance(error, MemoryError)
            raise error
        if self.to_deliver:
            self.clock.now_ms += 1
            message = self.to_deliver.pop(0)
            if isinstance(message, bytes):
                message = FakeMessage(message)
            self.on_message(message)
            return 1
        self.clock.now_ms += max(timeout_ms, 1)
        return 0

    def publish(self, topic, msg, retain, qos):
        self.on_publish(topic, msg)
        if qos and self.queued >= self.room:
            raise OSError("full")
        if not qos and not self.is_connected:
            raise OSError("closed")
        if not self.is_connected:
            self.queued += 1
        self.published.append((bytes(topic), bytes(msg), retain, qos))

    def disconnect(self):
        self.calls.append(("disconnect",))
        self.is_connected = False


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def client(clock):
    return FakeClient(clock)


@pytest.fixture
def make_bench(clock, client, tmp_path):
    """make_bench(options of Node, is_woken, **settings) -> a node, which finds the state that
    the one before left."""

    def make(node=None, is_woken=False, **config):
        client.is_connected = False
        return Bench(clock, client, tmp_path / "state.json", node, is_woken, **config)

    return make


@pytest.fixture
def bench(make_bench):
    """A node."""
    return make_bench()
