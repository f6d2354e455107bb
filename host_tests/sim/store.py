"""A store that survives resets, for runs without a flash: what is durable, and no more.

It has the face of `umqtt31.ram.RamStore` and keeps an ordered log of its calls, as a
journal does; what they add up to says `host_tests.standin.store`.
A reset loses the newest records of the log that nothing made durable, all of them or
as many as the fault says; `remove` alone makes nothing durable, not even at `commit()`.
So it shows which barriers the client really relies on.
"""

from typing import Any

from host_tests.standin.store import KeepingStore

from .network import DeviceReset

_ANY_NUMBER = 1 << 30


class Medium:
    """What of a device outlives its resets: a log of records and how much is durable."""

    def __init__(self) -> None:
        self.log: list[tuple] = []
        self.durable = 0

    def cut(self, survivors: int) -> None:
        """A reset; `survivors`: how many records that were not durable are there all the same."""
        del self.log[self.durable + survivors :]


class SurvivingStore:
    """The store of one boot over the `Medium` of its device.

    `is_deferred`: `put()` is durable only after `commit()`, as with a journal that
    shares pages.
    """

    def __init__(self, world: Any, medium: Medium, is_deferred: bool):
        self._world = world
        self._medium = medium
        self.is_deferred = is_deferred

    def open(self, client_id: bytes, slots: int, slot_bytes: int, held_slots: int) -> None:
        self._slots = slots
        self._packets: dict[int, bytes] = {}
        self._is_due = False

    def recover(self, session: Any) -> None:
        kept, last_id = self._replay()
        kept.renumber()
        # All of it is there before anything is handed over, which may write.
        log: list[tuple] = [("renew", kept.is_clean)]
        log += [("hold", packet_id) for packet_id in kept.held]
        for slot, packet_id, qos, packet, has_pubrec, maybe_sent in kept.kept:
            self._packets[slot] = packet
            log.append(("put", slot, packet_id, qos, packet, len(packet), maybe_sent))
            if has_pubrec:
                log.append(("pubrec", slot))
        log.append(("last", last_id))
        self._medium.log = log
        self._medium.durable = len(log)
        self._on_flash = len(kept.kept)
        kept.last_id = last_id
        kept.recover(session)

    def _replay(self) -> tuple[KeepingStore, int]:
        kept = KeepingStore()
        kept.open(b"", _ANY_NUMBER, 0, 0)
        last_id = 0
        for name, *fields in self._medium.log:
            if name == "last":
                last_id = fields[0]
                continue
            getattr(kept, name)(*fields)
            if name == "put":
                last_id = fields[1] or last_id
        return kept, last_id

    def _step(self) -> None:
        world = self._world
        if world.is_dead:
            raise DeviceReset
        struck = world.store.step()
        if struck:
            world.strike(struck, None)
            raise DeviceReset

    def put(
        self, slot: int, packet_id: int, qos: int, buf: bytearray, n: int, maybe_sent: bool
    ) -> bool:
        self._step()
        if self._on_flash == self._slots:
            self.sync()  # no room but by forgetting what is done
        self._on_flash += 1
        packet = bytes(buf[:n])
        self._packets[slot] = packet
        self._medium.log.append(("put", slot, packet_id, qos, packet, n, maybe_sent))
        self._is_due = True
        if not self.is_deferred:
            self._force()
        return True

    def get(self, slot: int, buf: bytearray) -> int:
        packet = self._packets[slot]
        buf[: len(packet)] = packet
        return len(packet)

    def pubrec(self, slot: int) -> None:
        self._record("pubrec", slot)

    def remove(self, slot: int) -> None:
        was_due = self._is_due
        self._record("remove", slot)
        self._is_due = was_due
        del self._packets[slot]

    def hold(self, packet_id: int) -> None:
        self._record("hold", packet_id)

    def release(self, packet_id: int) -> None:
        self._record("release", packet_id)

    def online(self) -> None:
        self._record("online")

    def renew(self, is_clean: bool) -> None:
        self._record("renew", is_clean)

    def clear(self) -> None:
        self._record("clear")
        self.sync()

    def _record(self, name: str, *fields: int) -> None:
        self._step()
        self._medium.log.append((name, *fields))
        self._is_due = True

    def _force(self) -> None:
        self._medium.durable = len(self._medium.log)
        self._on_flash = len(self._packets)
        self._is_due = False

    def commit(self) -> None:
        self._step()
        if self._is_due:
            self._force()

    def sync(self) -> None:
        self._step()
        self._force()
