"""The world around a fuzzed client: a clock, and the stream that gives it hostile bytes."""

from host_tests.sim.clock import Clock
from host_tests.standin.stream import WatchfulStream


class Finding(Exception):
    """The client did what it never may do."""


class World:
    """What `injected` asks of a world: a clock that turns when slept on.

    It turns fast once the broker has nothing more to say: all that is left to
    wait for then is a time-out.
    """

    seed = 1

    def __init__(self) -> None:
        self.now = 0
        self.clock = Clock(self)
        self.stream: WatchfulStream | None = None

    def sleep(self, ms: int) -> None:
        is_over = self.stream is not None and self.stream.is_drained()
        self.now += 100 * ms if is_over else ms

    def open_link(self, *address: object) -> None:
        raise OSError("only streams here")
