"""One life of a journal, from opening to the next cut, beside the reference model."""

import struct
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
    held_slots: int = 2  # sets of received ids
    in_ram: int = 3  # messages that the core has room for
    level: int = 3
    group_commit: bool = False
    client_id: bytes = b"c"
    worn: tuple[int, ...] = ()  # blocks that keep nothing, in silence
    journal: type = Journal

    def flash(self, image: bytes | None = None) -> Flash:
        """A flash of these sizes, erased or with the contents given."""
        flash = Flash(self.blocks, self.block_bytes, self.page_bytes, image)
        flash.worn = dict.fromkeys(self.worn, False)
        return flash


class Opened:
    """A journal, and the core's part in using it."""

    def __init__(self, setting: Setting, flash: Flash) -> None:
        self.journal = setting.journal(
            flash,
            program_bytes=setting.page_bytes,
            erase_bytes=setting.block_bytes,
            cell_bytes=setting.cell_bytes,
            group_commit=setting.group_commit,
        )
        # Received QoS 2 ids as the core keeps them: set of 30, a bit for each id, ticks.
        self.held = [0] * (3 * setting.held_slots)
        self.behind, self.sent, self.last_id, self.is_clean = self.journal.open(
            setting.client_id,
            setting.level,
            setting.slot_bytes,
            setting.slots,
            self.hold,
            self.held,
            12 * setting.slots,
        )
        self._buf = bytearray(setting.slot_bytes + 5)

    def hold(self, packet_id: int) -> None:
        """The core holds this id from now on."""
        number, bit = divmod(packet_id, 30)
        rows = range(0, len(self.held), 3)
        own = [k for k in rows if self.held[k + 1] and self.held[k] == number]
        k = [*own, *(k for k in rows if not self.held[k + 1])][0]  # IndexError: there is no room
        self.held[k : k + 2] = [number, self.held[k + 1] | 1 << bit]

    def release(self, packet_id: int) -> None:
        number, bit = divmod(packet_id, 30)
        for k in range(0, len(self.held), 3):
            if self.held[k] == number:
                self.held[k + 1] &= ~(1 << bit)

    def held_ids(self) -> tuple[int, ...]:
        """The ids that are held, by number."""
        return tuple(
            sorted(
                self.held[k] * 30 + bit
                for k in range(0, len(self.held), 3)
                for bit in range(30)
                if self.held[k + 1] >> bit & 1
            )
        )

    def renew(self, is_clean: bool) -> None:
        """A new session: a clean one is recorded before the core forgets the old one."""
        if not is_clean:
            self.held[:] = [0] * len(self.held)
        self.journal.renew(is_clean)
        self.held[:] = [0] * len(self.held)

    def put(self, packet_id: int, qos: int, packet: bytes, is_online: bool, most: int) -> bool:
        """Accept a message; with `most` in RAM it lies behind -> was there room?"""
        entry = struct.pack(">BHH", 0x30 + (qos << 4), len(packet), packet_id) + packet
        is_behind = self.behind > 0 or most == 0
        if not self.journal.put(entry, 0, len(entry), is_online, is_behind):
            return False
        self.behind += is_behind
        return True

    def fetch(self) -> Message | None:
        """The next message, None if it is lost."""
        n = self.journal.fetch(self._buf, 0)
        self.behind -= 1
        state, _, packet_id = struct.unpack_from(">BHH", self._buf)
        if not state:
            return None
        return Message(
            packet_id,
            1 if state & 0xF0 == 0x40 else 2,
            bytes(self._buf[5:n]),
            state & 0xF0 == 0x70,
            state & 8 > 0,
        )


def found_on(setting: Setting, image: bytes) -> State:
    """What a journal on this image hands over."""
    opened = Opened(setting, setting.flash(image))
    fetched = [opened.fetch() for _ in range(opened.behind)]
    messages = [message for message in fetched if message]
    if len(messages) < len(fetched):
        raise ValueError("a message is lost")
    if opened.sent != sum(message.maybe_sent for message in messages):
        raise ValueError(f"{opened.sent} messages should have been sent")
    return State(tuple(messages), opened.held_ids(), opened.last_id, opened.is_clean)


class Life:
    """A journal on `flash`, its recovered `state`, and the model from there on."""

    def __init__(self, setting: Setting, flash: Flash, state: State | None = None) -> None:
        self.refused = 0
        self._setting = setting
        if state is None:
            image = bytearray(flash.ioctl(4, 0) * flash.ioctl(5, 0))
            flash.readblocks(0, image)
            state = found_on(setting, bytes(image))
        self.state = state
        self.opened = Opened(setting, flash)
        self.journal = self.opened.journal
        self.model = Model(self.state, setting.group_commit)
        for _ in range(3):
            self.journal.tidy()

    def do(self, call: Call) -> None:
        """Make one call on the journal and tell the model.

        ("put", packet id, QoS, packet, maybe sent), ("pubrec" or "remove", packet id),
        ("fetch",) and ("check",) read one message that lies behind, or all, and the rest as the
        core calls them.
        """
        name, *args = call
        if name in ("fetch", "check"):
            self._fetch(self.opened.behind if name == "check" else 1)
            return
        if name == "put":
            if not self._put(*args):
                self.refused += 1
                return
        elif name in ("pubrec", "remove"):
            if not self._answer(name, *args):
                return  # it was refused
        elif name == "hold":
            if args[0] not in self.model.state.held:
                self.opened.hold(args[0])
            self.journal.note(0x30, args[0])
        elif name == "release":
            if args[0] in self.model.state.held:
                self.journal.note(0x62, args[0])
                self.opened.release(args[0])
        elif name == "renew":
            self.opened.renew(*args)
        elif name == "online":
            self.journal.note(0x20, 0)
        else:
            getattr(self.journal, name)()
        getattr(self.model, name)(*args)

    def _fetch(self, count: int) -> None:
        for _ in range(min(count, self.opened.behind)):
            messages = self.model.state.messages
            at = len(messages) - self.opened.behind
            message = self.opened.fetch()
            assert message is not None
            expected = messages[at]
            assert message[:4] == expected[:4], (message, expected)

    def _answer(self, name: str, packet_id: int) -> bool:
        ids = [message.packet_id for message in self.model.state.messages]
        if packet_id not in ids:
            return False
        self._fetch(ids.index(packet_id) + 1 + self.opened.behind - len(ids))
        self.journal.note(0x50 if name == "pubrec" else 0x40, packet_id)
        return True

    def _put(self, packet_id: int, qos: int, packet: bytes, sent: bool) -> bool:
        count = len(self.model.state.messages)
        if count >= self._setting.slots:
            return False
        in_ram = max(0, self._setting.in_ram - (count - self.opened.behind))
        return self.opened.put(packet_id, qos, packet, sent, in_ram)
