"""A store that survives resets, for runs without a flash: what is durable, and no more.

It keeps an ordered log of its calls, as a journal does; what they add up to says
`host_tests.standin.store`.  A reset loses the newest of the calls that nothing made durable,
all of them or as many as the fault says; that a message is done makes nothing durable, not
even at `commit()`.  So it shows which barriers the client really relies on.
"""

from host_tests.standin import packets as p
from host_tests.standin.store import KeepingStore

from .network import DeviceReset

_ANY_NUMBER = 1 << 30
_DONE = (p.PUBACK << 4, p.PUBCOMP << 4)


class Medium(KeepingStore):
    """What of a device outlives its resets: what is durable, and the calls since."""

    def __init__(self):
        super().__init__()
        self.slots = _ANY_NUMBER
        self.calls = []

    def cut(self, survivors):
        """A reset; `survivors`: how many calls that were not durable are there all the same."""
        for name, *args in self.calls[:survivors]:
            getattr(self, name)(*args)
        self.calls.clear()


class SurvivingStore(KeepingStore):
    """The store of one boot over the `Medium` of its device.

    `is_deferred`: `put()` is durable only after `commit()`, as with a journal that
    shares pages.
    """

    def __init__(self, world, medium, is_deferred):
        super().__init__()
        self._world = world
        self._medium = medium
        self._is_deferred = is_deferred
        self._is_due = False
        self.kept = [list(entry) for entry in medium.kept]
        self.held = list(medium.held)
        self.last_id, self.is_clean = medium.last_id, medium.is_clean
        self._on_flash = len(self.kept)

    def _step(self):
        world = self._world
        if world.is_dead or world.meet(world.store):
            raise DeviceReset

    def _record(self, name, *args):
        self._step()
        getattr(super(), name)(*args)
        self._medium.calls.append((name, *args))
        self._is_due = True

    def put(self, ring, at, n, is_online, is_behind):
        self._step()
        if self._on_flash >= self.slots:
            self.sync()  # no room but by forgetting what is done
        if not super().put(ring, at, n, is_online, is_behind):
            return False
        self._on_flash += 1
        self._medium.calls.append(("put", bytes(ring[at : at + n]), 0, n, is_online, False))
        self._is_due = True
        if not self._is_deferred:
            self._force()
        return True

    def note(self, first, packet_id):
        was_due = self._is_due
        self._record("note", first, packet_id)
        if first in _DONE:
            self._is_due = was_due

    def renew(self, is_clean):
        self._record("renew", is_clean)

    def _force(self):
        self._medium.cut(_ANY_NUMBER)
        self._on_flash = len(self.kept)
        self._is_due = False

    def commit(self):
        counter = self._world.store
        if self._world.is_dead or counter.count == counter.next:
            self._step()
        counter.count += 1  # as a step that nothing strikes, and most calls are of this one
        if self._is_due:
            self._force()

    tidy = commit

    def sync(self):
        self._step()
        self._force()
