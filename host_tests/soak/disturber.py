"""Breaks link, power and broker at random moments, all from one seed.

It knows what it did (`counts`) and leaves everything in order when asked to stop.
"""

import random
import time
from collections import Counter
from collections.abc import Callable

from host_tests.brokers import Mosquitto
from tools.demo.desk import DeskNode
from tools.demo.proxy import Proxy
from tools.demo.tap import BROKER, CLIENT

_PAUSE_S = (0.2, 3.0)
_HOLD_S = (0.5, 8.0)
_DOWN_S = (0.2, 2.0)


class Disturber:
    """`victim` is the node whose plug is pulled; link and broker are those of all nodes."""

    def __init__(self, broker: Mosquitto, proxy: Proxy, victim: DeskNode, seed: int):
        self.counts: Counter[str] = Counter()
        self._broker = broker
        self._proxy = proxy
        self._victim = victim
        self._random = random.Random(seed)
        self._acts: tuple[tuple[str, int, Callable[[], None]], ...] = (
            ("link cut", 4, proxy.cut),
            ("link cut inside a packet of the node", 4, lambda: self._cut_in_packet(CLIENT)),
            ("link cut inside a packet of the broker", 4, lambda: self._cut_in_packet(BROKER)),
            ("link held still", 2, self._hold),
            ("plug pulled", 4, self._pull_plug),
            ("broker restarted", 1, self._restart_broker),
        )

    def step(self) -> str:
        """Wait a random while, then break something -> what."""
        time.sleep(self._random.uniform(*_PAUSE_S))
        weights = [weight for _, weight, _ in self._acts]
        name, _, act = self._random.choices(self._acts, weights)[0]
        act()
        self.counts[name] += 1
        return name

    def _cut_in_packet(self, sender: int) -> None:
        self._proxy.cut_in_packet(self._random.randrange(400), sender)

    def _hold(self) -> None:
        self._proxy.hold()
        time.sleep(self._random.uniform(*_HOLD_S))
        self._proxy.release()

    def _pull_plug(self) -> None:
        self._victim.kill()
        self._victim.start()

    def _restart_broker(self) -> None:
        self._broker.stop()
        time.sleep(self._random.uniform(*_DOWN_S))
        self._broker.start()
