"""Cuts a scenario at every flash operation, in every way, and judges what comes back."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from host_tests.standin.nor import DONE, MODES, TORN_BITS, TORN_PREFIX, UNDONE, Flash, cut

from .life import Call, Life, Setting, State, calls, found_on
from .scenarios import Scenario


class Broken(AssertionError):
    """A cut led to a state that is neither the one before nor the one after."""


class Operation(NamedTuple):
    """The flash before an operation, and what the operation changes."""

    image: bytes
    at: int
    before: bytes
    after: bytes

    def cut(self, mode: str, seed: int = 0) -> bytes:
        torn = cut(self.before, self.after, mode, seed)
        return self.image[: self.at] + torn + self.image[self.at + len(torn) :]


@dataclass
class Checker:
    """Runs scenarios.  `torn`: how many torn variants of each kind an operation gets;
    `is_whole`: cut twice also where carrying on after a first cut; `count`: cuts made "once",
    "twice" and where it was "carried on"."""

    torn: int
    is_whole: bool = False
    count: Counter[str] = field(default_factory=Counter)

    def run(self, scenario: Scenario) -> None:
        """Raises Broken, WrongUse of the flash, or what the journal raises."""
        setting = scenario.setting
        self._recovered: dict[bytes, State] = {}
        self._gone_on: set[bytes] = set()
        operations, allowed = self._record(setting, scenario.calls)
        for k, operation in enumerate(operations):
            where = f"{scenario.name}, operation {k} at {operation.at}"
            first = self._judge(setting, operation.cut(UNDONE), allowed[k], where)
            last = self._judge(setting, operation.cut(DONE), allowed[k], where)
            for mode, seed in self._ways(k):
                image = operation.cut(mode, seed)
                self._judge(setting, image, (first, last), f"{where}, {mode} {seed}")
                self._go_on(setting, image, f"{where}, {mode} {seed}")

    def _ways(self, k: int) -> Iterator[tuple[str, int]]:
        for mode in MODES:
            for i in range(self.torn if mode in (TORN_PREFIX, TORN_BITS) else 1):
                yield mode, k * self.torn + i

    def _record(self, setting: Setting, calls: tuple[Call, ...]):
        # One run without a cut -> operations, and for each the states allowed.
        flash = setting.flash()
        operations = _watched(flash)
        allowed: list[list[State]] = []
        life = Life(setting, flash)
        for call in calls:
            least = life.required
            life.do(*call)
            states = life.states[least:]
            allowed.extend([states] * (len(operations) - len(allowed)))
        self._judge(setting, bytes(flash.data), life.allowed(), "at the end")
        wear = [count for block, count in enumerate(flash.wear) if block not in setting.worn]
        if max(wear) - min(wear) > 2:
            raise Broken(f"blocks wear out one before the other: {wear}")
        return operations, allowed

    def _recover(self, setting: Setting, image: bytes) -> State:
        state = self._recovered.get(image)
        if state is None:
            try:
                state = found_on(setting, image)
            except (OSError, IndexError, ValueError, KeyError) as error:
                raise Broken(f"recovery failed: {error}") from error
            self._recovered[image] = state
        return state

    def _judge(self, setting: Setting, image: bytes, allowed, where: str) -> State:
        self.count["once"] += 1
        state = self._recover(setting, image)
        if state not in allowed:
            choice = " or ".join(map(str, allowed))
            raise Broken(f"{where}: recovered {state} instead of {choice}")
        return state

    def _go_on(self, setting: Setting, image: bytes, where: str) -> None:
        # Recovery, cut again at each of its operations; then some more calls.  From the same
        # image all goes on the same way: one operation done is the next one undone.
        if image in self._gone_on:
            return
        self._gone_on.add(image)
        state = self._recover(setting, image)
        flash = setting.flash(image)
        operations = _watched(flash)
        life = Life(setting, flash, state)
        in_recovery = len(operations)
        for call in _more_calls(state):
            life.do(*call)
        self.count["carried on"] += 1
        if self._recover(setting, bytes(flash.data)) != life.state:
            raise Broken(f"{where}: carried on, and lost what came then")
        for k, operation in enumerate(operations):
            if k >= in_recovery and not self.is_whole:
                break
            allowed = [state] if k < in_recovery else life.states
            for mode, seed in self._ways(k):
                self.count["twice"] += 1
                if self._recover(setting, operation.cut(mode, seed)) not in allowed:
                    raise Broken(f"{where}: then again at {k}, {mode} {seed}")


def _watched(flash: Flash) -> list[Operation]:
    """The operations of `flash` from now on, as they come."""
    operations: list[Operation] = []
    flash.watch = lambda at, before, after: operations.append(
        Operation(bytes(flash.data), at, before, after)
    )
    return operations


def _more_calls(state: State) -> Iterator[Call]:
    # What every client may do next, whatever it recovered.
    last_id = state.last_id
    yield ("online",)
    for message in state.messages[:2]:
        if message.qos == 2:
            yield ("pubrec", message.packet_id)
    if state.messages:
        yield ("remove", state.messages[0].packet_id)
    if state.held:
        yield ("release", state.held[0])
    yield ("hold", 65535)
    yield ("put", last_id + 1, 2, b"more", True)
    yield from calls("check; sync")
