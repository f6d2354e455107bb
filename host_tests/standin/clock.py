"""A clock that tests turn: stands in for the module `time` as MicroPython has it.

Its ticks have the port's range (boards: 30 bits, and so has CPython here) and start
just before they wrap; sleeping turns it, and no real time passes.  Runs under CPython
and under MicroPython, where it allocates nothing for the first days.
"""

import sys
import time

_MASK = (1 << 30) - 1
_HALF = 1 << 29


def _ticks_add(ticks: int, delta: int) -> int:
    return ticks + delta & _MASK


def _ticks_diff(a: int, b: int) -> int:
    return (a - b + _HALF & _MASK) - _HALF


if sys.implementation.name == "micropython":
    # The library takes these two from the port, and boards compute them without long integers.
    _ticks_add = time.ticks_add  # type: ignore[attr-defined]
    _ticks_diff = time.ticks_diff  # type: ignore[attr-defined]
    _MASK = _ticks_add(0, -1)


class Clock:
    """`now_ms`: how much time went by since it began."""

    BEFORE_WRAP_MS = 2500

    ticks_add = staticmethod(_ticks_add)
    ticks_diff = staticmethod(_ticks_diff)

    def __init__(self) -> None:
        self.now_ms = 0

    def ticks_ms(self) -> int:
        return self.now_ms - self.BEFORE_WRAP_MS & _MASK

    def sleep_ms(self, ms: int) -> None:
        self.now_ms += ms
