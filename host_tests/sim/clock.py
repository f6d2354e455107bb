"""What takes the places of `time`, `socket` and `random` in everything that is simulated."""

import random
import socket  # noqa: F401 - there is one to be replaced
import sys
from contextlib import contextmanager
from functools import cache
from inspect import iscoroutinefunction

from host_tests.choice import loaded_modules
from host_tests.standin import clock as standin
from host_tests.standin.sockets import Sockets

PERIOD = 1 << 30
FIRST_TICKS = PERIOD - 150


class Clock(standin.Clock):
    """The clock of a world: its time, which sleeping turns on with all that happens in it."""

    def __init__(self, world):
        self._world = world
        self.offset = FIRST_TICKS

    def ticks_ms(self):
        return self._world.now + self.offset & PERIOD - 1

    def device_ms(self):
        """What the device's clock counts, without the ticks' wrap."""
        now = self._world.now + self.offset
        return now

    def sleep_ms(self, ms):
        self._world.sleep(ms)

    def sleep(self, seconds):
        self._world.sleep(int(seconds * 1000))


class Dice(random.Random):
    """`random` for umqtt31.  In a first life packet ids begin at 1: traces are easy to read."""

    _has_begun = False

    def getrandbits(self, bits):
        if bits == 16 and not self._has_begun:
            self._has_begun = True
            return 0
        return super().getrandbits(bits)


_TIMES = ("ticks_ms", "ticks_add", "ticks_diff", "sleep_ms", "sleep")
_NAMES = (*_TIMES, "time", "random", "socket")


@contextmanager
def injected(world):
    """Replace time, `random` and `socket` in umqtt31 by simulated ones."""
    stand_ins = {name: getattr(world.clock, name) for name in _TIMES}
    stand_ins.update(time=world.clock, random=Dice(world.seed), socket=Sockets(world.open_link))
    places = [(sys.modules, "socket"), *_places(tuple(loaded_modules()))]
    originals = [names[name] for names, name in places]
    for names, name in places:
        names[name] = stand_ins[name]
    try:
        yield
    finally:
        for (names, name), original in zip(places, originals, strict=True):
            names[name] = original


@cache
def _places(modules):
    return [
        (vars(module), name)
        for module in modules
        for name in _NAMES
        if name in vars(module)
        and not iscoroutinefunction(vars(module)[name])  # asyncio's own sleep_ms()
    ]
