"""A store that survives resets, for runs without a flash: what is durable, and no more.

It has the face of `umqtt31.ram.RamStore` and keeps an ordered log, as a journal does.
A reset loses the newest records of the log that nothing made durable, all of them or
as many as the fault says; `remove` alone makes nothing durable, not even at `commit()`.
So it shows which barriers the client really relies on.
"""

from typing import Any

from .network import DeviceReset


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
        self._ids: dict[int, int] = {}
        self._is_due = False

    def recover(self, session: Any) -> None:
        puts, held, last_id, is_clean = self._replay()
        log: list[tuple] = [("renew", is_clean)]
        log += [("hold", packet_id) for packet_id in held]
        for slot, (key, packet_id, qos, packet, has_pubrec, maybe_sent) in enumerate(puts):
            self._packets[slot] = packet
            self._ids[slot] = key
            log.append(("put", key, packet_id, qos, packet, maybe_sent))
            if has_pubrec:
                log.append(("pubrec", key))
        log.append(("last", last_id))
        # All of it is there before anything is handed over, which may write.
        self._medium.log = log
        self._medium.durable = len(log)
        self._next_key = 1 + max((put[0] for put in puts), default=0)
        self._on_flash = len(puts)
        for packet_id in held:
            session.restore_held(packet_id)
        for slot, (_, packet_id, qos, _, has_pubrec, maybe_sent) in enumerate(puts):
            session.restore(slot, packet_id, qos, has_pubrec, maybe_sent)
        if last_id:
            session.restore_last_id(last_id)
        session.restore_clean(is_clean)

    def _replay(self) -> tuple[list[list], list[int], int, bool]:
        puts: dict[int, list] = {}
        held: dict[int, None] = {}
        last_id = 0
        is_clean = False
        for name, *fields in self._medium.log:
            if name == "put":
                key, packet_id, qos, packet, maybe_sent = fields
                puts[key] = [key, packet_id, qos, packet, False, maybe_sent]
                last_id = packet_id or last_id
            elif name == "pubrec":
                puts[fields[0]][4] = True
            elif name == "remove":
                puts.pop(fields[0], None)
            elif name == "online":
                for put in puts.values():
                    put[5] = True
            elif name == "hold":
                held[fields[0]] = None
            elif name == "release":
                held.pop(fields[0], None)
            elif name == "renew":
                is_clean = fields[0]
                held.clear()
                for put in puts.values():
                    put[4] = put[5] = False
            elif name == "clear":
                puts.clear()
                held.clear()
            else:
                last_id = fields[0]
        return list(puts.values()), list(held), last_id, is_clean

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
        key = self._next_key
        self._next_key += 1
        packet = bytes(buf[:n])
        self._packets[slot] = packet
        self._ids[slot] = key
        self._medium.log.append(("put", key, packet_id, qos, packet, maybe_sent))
        self._is_due = True
        if not self.is_deferred:
            self._force()
        return True

    def get(self, slot: int, buf: bytearray) -> int:
        packet = self._packets[slot]
        buf[: len(packet)] = packet
        return len(packet)

    def pubrec(self, slot: int) -> None:
        self._record("pubrec", self._ids[slot])

    def remove(self, slot: int) -> None:
        was_due = self._is_due
        self._record("remove", self._ids.pop(slot))
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
