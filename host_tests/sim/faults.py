"""Faults: what goes wrong, and at which place of a run.

A fault is written `kind@place+number`, with `:value` where the kind has one, such as
`close@up37` (the link is closed after 37 bytes of the client) or `reset@store4:0`
(the device resets at the fifth call of its store, nothing that was lazy survives).
Places count from the start of the run, over connections and resets.
"""

import re
from typing import NamedTuple

NEVER = 1 << 60

# place -> {kind: default value}.
PLACES = {
    # bytes that the client writes
    "up": {
        "close": 0, "tear": 0, "hang": 0, "stall": 45_000, "split": 0, "jam": 40,
        "restart": 0, "forget": 0, "reset": 0, "narrow": 3,
    },
    # bytes that the broker writes
    "down": {
        "close": 0, "tear": 0, "hang": 0, "stall": 45_000, "split": 1, "restart": 0, "forget": 0,
    },
    # bytes that the client reads
    "read": {"reset": 0},
    # packets of the broker, CONNACK not counted; below level 5, where none gets lost
    "answer": {"lose": 0, "late": 35_000, "twice": 0},
    # packets that reach the broker; below level 5
    "heard": {"lose": 0},
    # calls of Device.wait(), that is, turns of the program's loop
    "turn": {"jump": 100_000},
    # calls of the store that survives resets
    "store": {"reset": 0},
    # operations of the flash under the journal
    "flash": {"reset": 0, "fail": 1},
    # reads of that flash
    "load": {"fail": 1},
    # packets of the broker, CONNACK not counted; level 5
    "sent": {"dismiss": 0x8B, "challenge": 0x18},
    # messages above QoS 0 that the broker gets; level 5
    "judged": {"deny": 0x97},
    # connections that the client opens
    "open": {"refuse": 0, "busy": 0, "distrust": 0, "away": 700_000_000},
    # messages handed to the program
    "handler": {"raise": 0},
    # CONNECTs that reach the broker; level 5
    "hello": {"challenge": 0x18},
}  # fmt: skip


class Fault(NamedTuple):
    """`kind` strikes `at` the so-manieth of `place`, counted from 0."""

    place: str
    at: int
    kind: str
    value: int

    def __str__(self):
        text = f"{self.kind}@{self.place}{self.at}"
        if self.value != PLACES[self.place][self.kind]:
            text += f":{self.value}"
        return text


def fault(kind, place, at, value=None):
    """A checked Fault; raises ValueError that says what is allowed."""
    if place not in PLACES:
        raise ValueError(f"no place {place!r}: use one of {', '.join(PLACES)}")
    if kind not in PLACES[place]:
        raise ValueError(f"no fault {kind!r} at {place!r}: use one of {', '.join(PLACES[place])}")
    if at < 0:
        raise ValueError(f"{kind}@{place}: the place is counted from 0")
    return Fault(place, at, kind, PLACES[place][kind] if value is None else value)


_TEXT = re.compile(r"([a-z]+)@([a-z]+)([0-9]+)(?::([0-9]+))?")


def parse(text):
    """`close@up37 reset@store4:0` -> faults; raises ValueError."""
    faults = []
    for word in text.replace(",", " ").split():
        match = _TEXT.fullmatch(word)
        if not match:
            raise ValueError(f"not a fault: {word!r}; write it like close@up37 or stall@down5:900")
        kind, place, at, value = match.groups()
        faults.append(fault(kind, place, int(at), int(value) if value else None))
    return tuple(faults)


def text(faults):
    """The reverse of `parse()`."""
    return " ".join(str(item) for item in faults)


class Counter:
    """Counts the happenings at one place; `next` is where a fault strikes next."""

    __slots__ = ("count", "next", "_pending")

    def __init__(self, faults):
        self.count = 0
        self._pending = sorted(faults, reverse=True)
        self.next = self._pending[-1].at if faults else NEVER

    def take(self):
        struck = self._pending.pop()
        self.next = self._pending[-1].at if self._pending else NEVER
        return struck

    def step(self):
        """Count one happening -> the fault that strikes it, or None."""
        struck = self.take() if self.count == self.next else None
        self.count += 1
        return struck
