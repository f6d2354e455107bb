"""A node with a network, a LED, a sensor and a watchdog that are fakes."""

from types import SimpleNamespace
from unittest.mock import Mock

from host_tests.firmware.decoding import decode
from node import Node
from ota import Updates
from settings import complete
from state import State

CONFIG = complete(
    {"client_id": "node-7", "server": "b", "interval_ms": 1000, "streams": [0, 1, 2]}
)
NOW = 1_800_000_000  # seconds since 1970


class FakeNetwork:
    why = None

    def __init__(self):
        self.link = True
        self.asked = 0

    def rssi(self):
        return -61

    def is_up(self):
        self.asked += 1
        return self.link


class FakeSensor:
    def __init__(self, *values):
        self.values = values
        self.fails = False

    def measure(self, reading):
        if self.fails:
            raise OSError("silent")
        for value in self.values:
            reading.add(*value)


class Bench:
    """A node with all its fakes."""

    def __init__(self, clock, client, path, node=None, is_woken=False, **config):
        self.clock, self.client, self.path = clock, client, path
        self.network, self.sensor = FakeNetwork(), FakeSensor((1, 2100))
        self.shown, self.fed, self.log = [], [], []
        led = SimpleNamespace(show=self.shown.append)
        watchdog = SimpleNamespace(feed=lambda: self.fed.append(clock.now_ms))
        state = State(str(path))
        if not is_woken:
            state.begin_boot()
        self.node = Node(
            CONFIG | config, state, client, [self.sensor], self.network, led,
            watchdog, clock, lambda *words: self.log.append(words), **node or {},
        )  # fmt: skip

    def run_ms(self, ms):
        end = self.clock.now_ms + ms
        while self.clock.now_ms < end:
            self.node.step()

    def take(self, *messages, ms=1000):
        """The broker brings these, and time goes on."""
        self.client.to_deliver += messages
        self.run_ms(ms)

    def said(self, kind):
        """What was published below the node's own topic."""
        topic = b"sensors/node-7/" + kind.encode()
        return [msg for name, msg, *_ in self.client.published if name == topic]

    def readings(self, stream):
        return list(map(decode, self.said(f"reading/{stream}")))

    def health(self):
        return list(map(decode, self.said("health")))

    def calls(self, name):
        return [call for call in self.client.calls if call[0] == name]

    def told(self, kind):
        """Of what was printed the lines that begin so."""
        return [words for words in self.log if words[0] == kind]


def fake_updates():
    """An ota.Updates to which nothing happens."""
    quiet = {"is_complete": False, "is_receiving": False, "is_on_trial": False}
    return Mock(Updates, **quiet, **{"takes_back.return_value": False})
