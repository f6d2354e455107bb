"""What the situations are played on, and the list that they are put into."""

from collections.abc import Callable
from dataclasses import dataclass, field

from .recorder import Client, packet_id

TOPIC = "site/value"
NUMBERED = [b"number %d" % number for number in range(11)]
VALUES = [b"%d" % value for value in (30, 31, 30, 30, 31, 31, 30, 31, 30, 31)]


@dataclass
class Truth:
    """What an audit must find, and nothing else.

    `lost`, `lost_at_0` and `unexplained`: {(client, topic): which of the topic's PUBLISHes, from
    0}; `missing`: {(device, topic): [(first number, last number)]} that nobody saw;
    `violations`: [(requirement, client)]; `findings`: names about clients and brokers,
    `told`: names about the capture; the rest are sums over all subscribers.
    """

    lost: dict = field(default_factory=dict)
    lost_at_0: dict = field(default_factory=dict)
    unexplained: dict = field(default_factory=dict)
    missing: dict = field(default_factory=dict)
    violations: list = field(default_factory=list)
    findings: list = field(default_factory=list)
    told: list = field(default_factory=list)
    duplicates: int = 0
    repeated: int = 0
    overtaking: int = 0


@dataclass
class Situation:
    """`play(stage)` records it; `broker` are options of mosquitto."""

    play: Callable
    truth: Truth
    broker: dict


SITUATIONS: dict[str, Situation] = {}


def situation(truth=None, name=None, **broker):
    """Put the function into `SITUATIONS`, by its name if no other is given."""

    def add(play):
        SITUATIONS[name or play.__name__] = Situation(play, truth or Truth(), broker)
        return play

    return add


class Stage:
    """A broker, a recorder and the clients on them."""

    def __init__(self, broker, recorder, folder):
        self.broker, self.recorder, self.folder = broker, recorder, folder
        self._clients = []

    def client(self, name, *, direct=False, **options):
        """A connected client; `direct`: past the capture."""
        if direct:
            options["port"] = self.broker.port
        client = Client(self.recorder, name, **options)
        self._clients.append(client)
        return client.connect()

    def both(self, qos=1, **options):
        """A publisher, and a subscriber (with options) to what it publishes."""
        return self.client("pub"), self.client("sub", **options).subscribe("site/#", qos)

    def quiet(self, seconds=10):
        """Let time pass in the capture."""
        self.recorder.quiet(seconds)

    def finish(self):
        """Ten quiet seconds, then goodbye."""
        self.quiet()
        for client in self._clients:
            client.disconnect()


def swallow(link, packet):
    # The broker believes that the client got it.
    qos = packet[0] >> 1 & 3
    if qos == 1:
        link.to_broker(b"\x40\x02" + packet_id(packet))
    return False


def freeze(client):
    # The program hangs: its socket stays open.
    client.paho.loop_stop()
