"""What a store has to remember, said in the simplest way: lists, and every state kept.

`Model` is told the same calls as the journal.  `states` grows by one with every call
that changes something; `required` is the newest that must have reached the flash.
"""

from typing import Any, NamedTuple


class Message(NamedTuple):
    """One accepted message, as recovery has to hand it over."""

    packet_id: int
    qos: int
    packet: bytes
    has_pubrec: bool
    maybe_sent: bool


class State(NamedTuple):
    """All that recovery hands over: messages oldest first, received ids by number."""

    messages: tuple[Message, ...] = ()
    held: tuple[int, ...] = ()
    last_id: int = 0
    is_clean: bool = False

    def __str__(self) -> str:
        messages = " ".join(
            f"{m.packet_id}q{m.qos}:{m.packet.hex()[:8]}{'r' * m.has_pubrec}{'s' * m.maybe_sent}"
            for m in self.messages
        )
        clean = ", clean" * self.is_clean
        return f"<{messages or '-'}; held {list(self.held)}; last id {self.last_id}{clean}>"


class Model:
    """The states that a store went through, beginning with what recovery found."""

    def __init__(self, state: State, is_deferred: bool) -> None:
        self.states = [state]
        self.required = 0
        self._due = 0  # the newest state that commit() makes durable
        self._is_deferred = is_deferred

    @property
    def state(self) -> State:
        return self.states[-1]

    def forget_old_states(self) -> None:
        """What was checked with every packet need not be again."""
        del self.states[:-1]
        self.required = 0

    def allowed(self) -> list[State]:
        """The states that may be on flash now."""
        return self.states[self.required :]

    def put(self, packet_id: int, qos: int, packet: bytes, maybe_sent: bool) -> None:
        message = Message(packet_id, qos, packet, False, maybe_sent)
        before = self.state.messages
        if maybe_sent:  # there is a connection, so those before it may have been, too
            before = tuple(m._replace(maybe_sent=True) for m in before)
        self._change(messages=(*before, message), last_id=packet_id)
        if not self._is_deferred:
            self.commit()

    def pubrec(self, packet_id: int) -> None:
        messages = tuple(
            m._replace(has_pubrec=m.has_pubrec or m.packet_id == packet_id)
            for m in self.state.messages
        )
        self._change(messages=messages)

    def remove(self, packet_id: int) -> None:
        """A message is done; need not survive."""
        left = tuple(m for m in self.state.messages if m.packet_id != packet_id)
        self._append(messages=left)

    def hold(self, packet_id: int) -> None:
        if packet_id not in self.state.held:
            self._change(held=tuple(sorted((*self.state.held, packet_id))))

    def release(self, packet_id: int) -> None:
        if packet_id in self.state.held:
            self._change(held=tuple(i for i in self.state.held if i != packet_id))

    def online(self) -> None:
        if not all(m.maybe_sent for m in self.state.messages):
            messages = tuple(m._replace(maybe_sent=True) for m in self.state.messages)
            self._change(messages=messages)

    def renew(self, is_clean: bool) -> None:
        messages = tuple(
            m._replace(maybe_sent=False, has_pubrec=False) for m in self.state.messages
        )
        if (messages, (), is_clean) != (self.state.messages, self.state.held, self.state.is_clean):
            self._change(messages=messages, held=(), is_clean=is_clean)

    def commit(self) -> None:
        """All but the newest removals are durable now."""
        self.required = max(self.required, self._due)

    tidy = commit

    def sync(self) -> None:
        """Everything is durable now."""
        self.required = len(self.states) - 1

    def _change(self, **fields: Any) -> None:
        self._append(**fields)
        self._due = len(self.states) - 1

    def _append(self, **fields: Any) -> None:
        self.states.append(self.state._replace(**fields))
