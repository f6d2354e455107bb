"""Reboots: the random programs of asyncio tasks with a store that outlives resets.

Each boot begins the tasks anew over what the store has kept, mostly with other settings; what
was accepted arrives, and what was acknowledged is not handed over again.
"""

from typing import Any

from host_tests import library  # noqa: F401 - makes umqtt31 importable

from . import tasks
from .faults import NEVER, Fault, fault
from .network import DeviceReset

from umqtt31 import CLOSED, JOURNAL, TIMEOUT, MQTTError  # isort: skip

_RESETS = (("up", 600), ("read", 600), ("store", 200), ("flash", 100))


class Watched(tasks.Watched):
    """The same of a client that keeps its messages in a store."""

    def __init__(self, world: tasks.TaskWorld, **options: Any):
        self._is_deferred = world.device.is_deferred
        super().__init__(world, store=world.device.store(), **options)
        self.on_drop = self._on_drop  # type: ignore[assignment]

    def _on_drop(self, packet_id: int, reason: int) -> None:
        self._outgoing.on_dropped(packet_id, reason == CLOSED, reason == TIMEOUT, reason)

    def publish_nowait(self, *args: Any) -> int:
        """As the client's, unless the device is off."""
        if self.world.is_dead:
            raise DeviceReset
        return super().publish_nowait(*args)

    def _turn(self, reads: bool = True) -> int:
        error = self.last_error
        handled: int = super()._turn(reads)  # type: ignore[misc]
        if self.last_error in (None, error):
            self._outgoing.on_kept()
        return handled


class Program(tasks.Program):
    """A random program of tasks over resets."""

    def _choose_faults(self) -> tuple[Fault, ...]:
        dice = self._dice
        found = {(one.place, one.at): one for one in super()._choose_faults()}
        for place, reach in _RESETS:
            for _ in range(dice.randint(0, 3)):
                at = dice.randint(0, reach)
                value = dice.choice((0, 1, 2, NEVER)) if place == "store" else dice.randrange(100)
                found[place, at] = fault("reset", place, at, value)
        return tuple(found.values())

    def run(self) -> None:
        """As tasks'."""
        dice = self._dice
        device = self.world.device
        device.store_kind = dice.choice(("log", "journal"))
        device.is_deferred = dice.random() < 0.4
        self._is_ordered = is_ordered = dice.random() < 0.2
        self.world.rules.outgoing.is_ordered = is_ordered
        if is_ordered:
            self._options["ordered"] = True
            self._up_qos = (dice.choice((1, 2)),)
        elif dice.random() < 0.3:
            self._options["overflow"] = dice.choice(("drop_oldest", "latest"))
        self._level = self._options.pop("level")
        super().run()

    def _make_client(self) -> Any:
        # A journal with messages is not for another level, from or to 5.
        level = self._dice.choice((3, 4, 5, self._level, self._level))
        if (level == 5) != (self._level == 5) and self.world.device.store_kind == "log":
            level = self._level
        window = 1 if self._is_ordered else self._dice.choice((1, 4))
        options = {
            "keepalive": 60,
            "buffer_size": 64,
            "max_inflight": window,
            "max_mqueue_len": 20 - window,  # all that an earlier boot took
            **self._options,
        }
        try:
            client = tasks.make_client(Watched, self.world, level=level, **options)
        except MQTTError as error:
            if error.code != JOURNAL or level == self._level:
                raise
            client = tasks.make_client(Watched, self.world, level=self._level, **options)
        else:
            self._level = level
        return client

    def _begins_anew(self) -> bool:
        return self._dice.random() < 0.15
