"""What the rules of both directions know of a run, and the first promise that it broke."""

from typing import Any, NoReturn


class Violation(BaseException):
    """A broken promise: `rule` is its id, the text says what was seen."""

    def __init__(self, rule: str, text: str):
        super().__init__(f"{rule}: {text}")
        self.rule = rule


class Record:
    """One run so far."""

    def __init__(self, world: Any):
        self._world = world
        self.violation: Violation | None = None
        self.level = 3  # that the client speaks
        self.life = 0  # counts the boots
        self.sessions_lost = 0  # by the broker, for whatever reason
        self.secret_losses = 0  # of these what the client could not know
        self.is_forgetful = False  # a reset takes all, the store is RAM

    @property
    def now(self) -> int:
        now: int = self._world.now
        return now

    def device_ms(self) -> int:
        """Milliseconds by the device's clock, which faults may put forward."""
        return int(self._world.clock.device_ms())

    def is_open(self, link: Any) -> bool:
        """Is this the client's connection, and did it not close it?"""
        return self._world.link is link and not link.is_closed

    def was_answer_lost(self) -> bool:
        """Did an answer of the broker come late or not at all?"""
        return any(fault.kind in ("lose", "late") for fault in self._world.struck)

    def fail(self, rule: str, text: str) -> NoReturn:
        """The run broke `rule`; it fails by the first one that it broke: the client, which it
        leaves like Ctrl-C, may close its connection for it."""
        violation = Violation(rule, text)
        self._world.note(f"VIOLATION {violation}")
        self.violation = self.violation or violation
        raise self.violation
