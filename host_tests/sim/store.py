"""A store that survives resets, for runs without a flash: what is durable, and no more.

It keeps an ordered log of its calls, as a journal does; what they add up to says
`host_tests.standin.store`.  A reset loses the newest of the calls that nothing made durable,
all of them or as many as the fault says; that a message is done makes nothing durable, not
even at `commit()`.  So it shows which barriers the client really relies on.
"""

import copy
from typing import Any

from host_tests.standin import packets as p
from host_tests.standin.store import KeepingStore

from .network import DeviceReset

_ANY_NUMBER = 1 << 30
_DONE = (p.PUBACK << 4, p.PUBCOMP << 4)


class Medium:
    """What of a device outlives its resets: what is durable, and the calls since."""

    def __init__(self) -> None:
        self.durable = KeepingStore()
        self.durable.slots = _ANY_NUMBER
        self.calls: list[tuple] = []

    def cut(self, survivors: int) -> None:
        """A reset; `survivors`: how many calls that were not durable are there all the same."""
        for name, *args in self.calls[:survivors]:
            getattr(self.durable, name)(*args)
        self.calls.clear()


class SurvivingStore:
    """The store of one boot over the `Medium` of its device.

    `is_deferred`: `put()` is durable only after `commit()`, as with a journal that
    shares pages.
    """

    def __init__(self, world: Any, medium: Medium, is_deferred: bool):
        self._world = world
        self._medium = medium
        self.is_deferred = is_deferred

    def open(
        self, client_id: bytes, level: int, buffer_size: int, most: int, *more: Any
    ) -> tuple[int, int, int, bool]:
        self._most = most
        self._is_due = False
        durable = self._medium.durable
        self._now = copy.copy(durable)
        self._now.kept = [list(entry) for entry in durable.kept]
        self._now.held = list(durable.held)
        self._on_flash = len(self._now.kept)
        return self._now.open(client_id, level, buffer_size, most, *more)

    def _step(self) -> None:
        world = self._world
        if world.is_dead:
            raise DeviceReset
        struck = world.store.step()
        if struck:
            world.strike(struck, None)
            raise DeviceReset

    def put(self, ring: bytearray, at: int, n: int, is_online: bool, is_behind: bool) -> bool:
        self._step()
        if self._on_flash >= self._most:
            self.sync()  # no room but by forgetting what is done
        if not self._now.put(ring, at, n, is_online, is_behind):
            return False
        self._on_flash += 1
        self._medium.calls.append(("put", bytes(ring[at : at + n]), 0, n, is_online, False))
        self._is_due = True
        if not self.is_deferred:
            self._force()
        return True

    def fetch(self, ring: bytearray, at: int) -> int:
        return self._now.fetch(ring, at)

    def note(self, first: int, packet_id: int) -> None:
        was_due = self._is_due
        self._record("note", first, packet_id)
        if first in _DONE:
            self._is_due = was_due

    def renew(self, is_clean: bool) -> None:
        self._record("renew", is_clean)

    def _record(self, name: str, *args: Any) -> None:
        self._step()
        getattr(self._now, name)(*args)
        self._medium.calls.append((name, *args))
        self._is_due = True

    def _force(self) -> None:
        self._medium.cut(_ANY_NUMBER)
        self._on_flash = len(self._now.kept)
        self._is_due = False

    def commit(self) -> None:
        counter = self._world.store
        if self._world.is_dead or counter.count == counter.next:
            self._step()
        counter.count += 1  # as a step that nothing strikes, and most calls are of this one
        if self._is_due:
            self._force()

    tidy = commit

    def sync(self) -> None:
        self._step()
        self._force()
