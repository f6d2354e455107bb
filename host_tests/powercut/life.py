"""One life of a journal, from opening to the next cut, beside what it has to remember.

That is said in the simplest way: tuples, and every state kept.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from host_tests import library  # noqa: F401 - makes umqtt31 importable
from host_tests.standin.nor import Flash
from umqtt31.journal import Journal

Call = tuple[Any, ...]  # method name, arguments
_IDS = 30  # in a set of received ids


def calls(text: str) -> Iterator[Call]:
    """`hold 7; commit` -> ("hold", 7), ("commit",)."""
    for call in text.split("; "):
        name, *args = call.split()
        yield (name, *map(int, args))


class Message(NamedTuple):
    """One accepted message, as recovery has to hand it over."""

    packet_id: int
    qos: int
    packet: bytes
    has_pubrec: bool
    maybe_sent: bool


class State(NamedTuple):
    """All that recovery hands over: messages oldest first, None for one that is lost; received
    ids by number."""

    messages: tuple[Message, ...] = ()
    held: tuple[int, ...] = ()
    last_id: int = 0
    is_clean: bool = False

    @property
    def ids(self) -> list[int | None]:
        return [m and m.packet_id for m in self.messages]

    def __str__(self) -> str:
        messages = " ".join(
            f"{m.packet_id}q{m.qos}:{m.packet.hex()[:8]}{'r' * m.has_pubrec}{'s' * m.maybe_sent}"
            for m in self.messages
        )
        clean = ", clean" * self.is_clean
        return f"<{messages or '-'}; held {list(self.held)}; last id {self.last_id}{clean}>"

    def after(self, name: str, *args: Any) -> "State":
        """What is to be remembered when this call was made."""
        messages, held = self.messages, self.held
        match name, *args:
            case "put", packet_id, qos, packet, maybe_sent:
                if maybe_sent:  # there is a connection, so those before it may have been, too
                    messages = tuple(m._replace(maybe_sent=True) for m in messages)
                message = Message(packet_id, qos, packet, False, maybe_sent)
                return self._replace(messages=(*messages, message), last_id=packet_id)
            case "pubrec", packet_id:
                messages = tuple(
                    m._replace(has_pubrec=m.has_pubrec or m.packet_id == packet_id)
                    for m in messages
                )
            case "remove", packet_id:
                messages = tuple(m for m in messages if m.packet_id != packet_id)
            case "hold", packet_id:
                held = tuple(sorted({*held, packet_id}))
            case "release", packet_id:
                held = tuple(one for one in held if one != packet_id)
            case ("online",):
                messages = tuple(m._replace(maybe_sent=True) for m in messages)
            case "renew", is_clean:
                messages = tuple(m._replace(maybe_sent=False, has_pubrec=False) for m in messages)
                return State(messages, (), self.last_id, is_clean)
        return self._replace(messages=messages, held=held)


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
    journal: Any = Journal

    def flash(self, image: bytes | None = None) -> Flash:
        """A flash of these sizes, erased or with the contents given."""
        flash = Flash(self.blocks, self.block_bytes, self.page_bytes, image)
        flash.worn = dict.fromkeys(self.worn, False)
        return flash


class Opened:
    """A journal, and the core's part in using it; its calls have the names of `State.after()`."""

    def __init__(self, setting: Setting, flash: Flash) -> None:
        self.flash = flash
        self.journal = journal = setting.journal(
            flash,
            program_bytes=setting.page_bytes,
            erase_bytes=setting.block_bytes,
            cell_bytes=setting.cell_bytes,
            group_commit=setting.group_commit,
        )
        self.commit, self.sync, self.tidy = journal.commit, journal.sync, journal.tidy
        # Received QoS 2 ids as the core keeps them: set of 30, a bit for each id, ticks.
        self._held = [0] * (3 * setting.held_slots)
        self.behind, self.sent, self.last_id, self.is_clean = journal.open(
            setting.client_id,
            setting.level,
            setting.slot_bytes,
            setting.slots,
            self._hold,
            self._held,
            12 * setting.slots,
        )
        self._buf = bytearray(setting.slot_bytes + 5)

    def do(self, text: str) -> "Opened":
        """Make the calls of `text`, see `calls()`; there is room for each message -> itself."""
        for name, *args in calls(text):
            assert getattr(self, name)(*args) is not False, text
        return self

    def put(
        self,
        packet_id: int,
        qos: int = 1,
        packet: bytes = b"packet",
        is_online: bool = False,
        in_ram: int | None = None,
    ) -> bool:
        """Accept a message -> was there room?  Without room for it in RAM it lies behind; None:
        there is room for it and for those that lie behind now."""
        while in_ram is None and self.behind:
            self.fetch()
        entry = struct.pack(">BHH", 0x30 + (qos << 4), len(packet), packet_id) + packet
        is_behind = self.behind > 0 or in_ram == 0
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
        qos = 1 if state & 0xF0 == 0x40 else 2
        packet = bytes(self._buf[5:n])
        return Message(packet_id, qos, packet, state & 0xF0 == 0x70, state & 8 > 0)

    def pubrec(self, packet_id: int) -> None:
        self.journal.note(0x50, packet_id)

    def remove(self, packet_id: int) -> None:
        self.journal.note(0x40, packet_id)

    def online(self) -> None:
        self.journal.note(0x20, 0)

    def hold(self, packet_id: int) -> None:
        self._hold(packet_id)
        self.journal.note(0x30, packet_id)

    def release(self, packet_id: int) -> None:
        self.journal.note(0x62, packet_id)
        number, bit = divmod(packet_id, _IDS)
        for k in range(0, len(self._held), 3):
            if self._held[k] == number:
                self._held[k + 1] &= ~(1 << bit)

    def _hold(self, packet_id: int) -> None:
        number, bit = divmod(packet_id, _IDS)
        held = self._held
        rows = range(0, len(held), 3)
        own = [k for k in rows if held[k + 1] and held[k] == number]
        k = [*own, *(k for k in rows if not held[k + 1])][0]  # IndexError: there is no room
        held[k : k + 2] = [number, held[k + 1] | 1 << bit]

    def renew(self, is_clean: bool) -> None:
        """A new session: a clean one is recorded before the core forgets the old one."""
        if not is_clean:
            self._held[:] = [0] * len(self._held)
        self.journal.renew(is_clean)
        self._held[:] = [0] * len(self._held)

    def state(self) -> State:
        """What this life found; all that lies behind is fetched."""
        messages: Any = tuple(self.fetch() for _ in range(self.behind))
        rows = zip(self._held[::3], self._held[1::3], strict=False)
        held = (n * _IDS + bit for n, bits in rows for bit in range(_IDS) if bits >> bit & 1)
        return State(messages, tuple(sorted(held)), self.last_id, self.is_clean)


def found_on(setting: Setting, image: bytes) -> State:
    """What a journal on this image hands over."""
    opened = Opened(setting, setting.flash(image))
    state = opened.state()
    if None in state.messages:
        raise ValueError("a message is lost")
    if opened.sent != sum(message.maybe_sent for message in state.messages):
        raise ValueError(f"{opened.sent} messages should have been sent")
    return state


class Life:
    """A journal on `flash`, and what it went through: `states` begins with what recovery found,
    and grows with every call; those before `required` cannot be on flash any more."""

    def __init__(self, setting: Setting, flash: Flash, state: State | None = None) -> None:
        self.refused = 0
        self._setting = setting
        if state is None:
            image = bytearray(flash.ioctl(4, 0) * flash.ioctl(5, 0))
            flash.readblocks(0, image)
            state = found_on(setting, bytes(image))
        self.states = [state]
        self.required = 0
        self._due = 0  # the newest state that commit() makes durable
        self._opened = Opened(setting, flash)
        self.journal = self._opened.journal
        for _ in range(3):
            self.journal.tidy()

    @property
    def state(self) -> State:
        return self.states[-1]

    def allowed(self) -> list[State]:
        return self.states[self.required :]

    def forget_old_states(self) -> None:
        """What was checked with every packet need not be again."""
        del self.states[:-1]
        self.required = self._due = 0

    def do(self, name: str, *args: Any) -> None:
        """Make one call on the journal and note what it has to remember.

        ("put", packet id, QoS, packet, maybe sent), ("pubrec" or "remove", packet id);
        ("fetch",) and ("check",) read one message that lies behind, or all; the rest as the
        core calls them.
        """
        opened, state = self._opened, self.state
        if name in ("fetch", "check"):
            self._fetch(opened.behind if name == "check" else 1)
            return
        if name == "put":
            in_ram = max(0, self._setting.in_ram - (len(state.messages) - opened.behind))
            is_full = len(state.messages) >= self._setting.slots
            if is_full or not getattr(opened, name)(*args, in_ram):
                self.refused += 1
                return
        elif name in ("pubrec", "remove"):
            if args[0] not in state.ids:
                return  # it was refused
            self._fetch(state.ids.index(args[0]) + 1 + opened.behind - len(state.ids))
            getattr(opened, name)(*args)
        elif name != "release" or args[0] in state.held:
            getattr(opened, name)(*args)
        self._note(name, args)

    def _note(self, name: str, args: list | tuple) -> None:
        state = self.state.after(name, *args)
        if name in ("put", "pubrec", "remove") or state != self.state:
            self.states.append(state)
            if name != "remove":  # which need not survive
                self._due = len(self.states) - 1
        is_committed = name == "put" and not self._setting.group_commit
        if name == "sync":
            self.required = len(self.states) - 1
        elif is_committed or name in ("commit", "tidy"):
            self.required = max(self.required, self._due)

    def _fetch(self, count: int) -> None:
        for _ in range(min(count, self._opened.behind)):
            expected = self.state.messages[-self._opened.behind]
            message = self._opened.fetch()
            assert message is not None
            assert message[:4] == expected[:4], (message, expected)
