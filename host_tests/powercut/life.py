"""One life of a journal, from opening to the next cut, beside the reference model."""

from dataclasses import dataclass
from typing import Any

from host_tests import library  # noqa: F401 - makes umqtt31 importable
from host_tests.standin.nor import Flash
from umqtt31.journal import Journal

from .model import Message, Model, State

Call = tuple[Any, ...]  # method name, arguments


@dataclass(frozen=True)
class Setting:
    """The sizes a journal is run with; `journal` is the class, so that a broken one
    can be put in its place."""

    blocks: int = 5
    block_bytes: int = 256
    page_bytes: int = 64
    cell_bytes: int = 32
    slots: int = 6
    slot_bytes: int = 20
    held_slots: int = 2
    group_commit: bool = False
    client_id: bytes = b"c"
    worn: tuple[int, ...] = ()  # blocks that keep nothing, in silence
    journal: type = Journal

    def flash(self, image: bytes | None = None) -> Flash:
        """A flash of these sizes, erased or with the contents given."""
        flash = Flash(self.blocks, self.block_bytes, self.page_bytes, image)
        flash.worn = dict.fromkeys(self.worn, False)
        return flash

    def open(self, flash: Flash) -> Any:
        """A journal on it, recovered but not yet handed over."""
        journal = self.journal(
            flash,
            program_bytes=self.page_bytes,
            erase_bytes=self.block_bytes,
            cell_bytes=self.cell_bytes,
            group_commit=self.group_commit,
        )
        journal.open(self.client_id, self.slots, self.slot_bytes, self.held_slots)
        return journal


class Collector:
    """Stands where the session does while the journal hands over."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, int, int, bool, bool]] = []
        self.held: list[int] = []
        self.last_id = 0
        self.is_clean = False

    def restore(self, slot: int, packet_id: int, qos: int, has_pubrec: bool, sent: bool) -> None:
        """One message, oldest first."""
        self.messages.append((slot, packet_id, qos, has_pubrec, sent))

    def restore_run(self, first: int, last: int) -> None:
        """Received ids in a row, oldest run first."""
        self.held.extend(range(first, last + 1))

    def restore_last_id(self, packet_id: int) -> None:
        """The newest packet id."""
        self.last_id = packet_id

    def restore_clean(self, is_clean: bool) -> None:
        """Did the session end with its connection?"""
        self.is_clean = is_clean


class Life:
    """A journal on `flash`, its recovered `state`, and the model from there on."""

    def __init__(self, setting: Setting, flash: Flash) -> None:
        self._slots: dict[int, int] = {}  # packet id -> slot
        self._buf = bytearray(setting.slot_bytes)
        self.refused = 0
        self.journal = setting.open(flash)
        found = Collector()
        self.journal.recover(found)
        messages = []
        for slot, packet_id, qos, has_pubrec, sent in found.messages:
            self._slots[packet_id] = slot
            messages.append(Message(packet_id, qos, self._read(slot), has_pubrec, sent))
        self._setting = setting
        held = tuple(sorted(found.held))
        self.state = State(tuple(messages), held, found.last_id, found.is_clean)
        self.model = Model(self.state, setting.group_commit)

    def _read(self, slot: int) -> bytes:
        n = self.journal.get(slot, self._buf)
        return bytes(self._buf[:n])

    def do(self, call: Call) -> None:
        """Make one call on the journal and tell the model.

        ("put", packet id, QoS, packet, maybe sent), ("pubrec" or "remove", packet id),
        ("check",) reads all packets back, and the rest as in the store's face.
        """
        name, *args = call
        if name == "check":
            for message in self.model.state.messages:
                assert self._read(self._slots[message.packet_id]) == message.packet
            return
        if name == "put":
            if not self._put(*args):
                self.refused += 1
                return
        elif name in ("pubrec", "remove"):
            if not any(m.packet_id == args[0] for m in self.model.state.messages):
                return  # it was refused
            getattr(self.journal, name)(self._slots[args[0]])
        else:
            getattr(self.journal, name)(*args)
        getattr(self.model, name)(*args)

    def _put(self, packet_id: int, qos: int, packet: bytes, sent: bool) -> bool:
        used = {self._slots[m.packet_id] for m in self.model.state.messages}
        slot = next((i for i in range(self._setting.slots) if i not in used), None)
        if slot is None:
            return False
        self._buf[: len(packet)] = packet
        if not self.journal.put(slot, packet_id, qos, self._buf, len(packet), sent):
            return False
        self._slots[packet_id] = slot
        return True
