"""Unsteady: a stream that does everything a stream may, over a link.

It gives and takes a few bytes, or none though there are some, says None or 0 where it takes
none, ends at any moment, and raises whatever ports and TLS raise, from any call; of what a
write that raises was given, all may have gone out, a part or nothing.
"""

import random
from typing import Any

from .network import Link

# Of Linux, macOS and lwIP; with the other sign, as MicroPython's TLS has them; of Mbed TLS.
_NUMBERS = (1, 4, 5, 9, 12, 22, 32, 71, 95, 100, 101, 103, 104, 105, 110, 111, 112, 113)
_NEGATIVE = (-2, -11, -104, -0x6900, -0x7280)
# What a socket says while it connects: then it is no error.
_CONNECTING = (11, 35, 36, 37, 57, 107, 114, 115, 119, 120, 128)
_EBADF = 9
_LONGEST_JAM_MS = 40


class Unsteady:
    """The stream of one connection; `seed` says what it does when."""

    def __init__(self, link: Link, seed: int):
        self._link = link
        self._dice = dice = random.Random(seed * 1000 + link.number)
        # How often each happens.
        self._short = dice.choice((0, 0.1, 0.5, 0.9))
        self._full = dice.choice((0, 0.1, 0.4))
        self._empty = dice.choice((0, 0.1, 0.4))
        self._failing = dice.choice((0, 0, 0.003, 0.02))
        self._no_room = dice.choice((None, None, 0))
        self._is_over = False

    def setblocking(self, *_: Any) -> None:
        """As the link's."""

    setsockopt = connect = setblocking

    def readinto(self, buf: bytearray, n: int) -> int | None:
        """-> bytes read, None when there is nothing, 0 at the end; or it raises."""
        self._check()
        dice = self._dice
        error = self._error()
        if error:
            raise error
        if dice.random() < self._failing / 2:
            self._link.end("close")
        if dice.random() < self._empty:
            return None
        return self._link.readinto(buf, dice.randint(1, n) if dice.random() < self._short else n)

    def write(self, buf: bytearray, off: int, n: int) -> int | None:
        """-> bytes taken, None or 0 when there is no room; or it raises."""
        self._check()
        link, dice = self._link, self._dice
        if dice.random() < self._full and link.jam_until <= link.world.now:
            link.jam_until = link.world.now + dice.randint(0, _LONGEST_JAM_MS)
        before = link.most_up
        if dice.random() < self._short:
            link.most_up = dice.randint(1, n)
        went_out = dice.random() < 0.6
        error = self._error() if not went_out else None
        try:
            taken = link.write(buf, off, n)
        except OSError as reason:
            raise error or reason
        finally:
            link.most_up = before
        error = self._error() if went_out else error
        if error:
            link.world.rules.outgoing.on_write_failed()
            raise error
        return taken or self._no_room

    def close(self) -> None:
        """As the link's; it may raise, too."""
        self._link.close()
        if self._dice.random() < 0.2:
            raise OSError(_EBADF)

    def _check(self) -> None:
        link, dice = self._link, self._dice
        if self._is_over:
            link.world.rules.fail("stream", "is used after it raised an error")
        if not link.notes.is_online and dice.random() < self._failing:
            raise OSError(dice.choice(_CONNECTING))

    def _error(self) -> Exception | None:
        # What is to be raised now, behind which nothing gets through.
        dice = self._dice
        link = self._link
        if dice.random() >= self._failing or link.world.is_dead:
            return None
        self._is_over = True
        link.end("tear")
        return dice.choice(
            (
                OSError(dice.choice(_NUMBERS)),
                OSError(dice.choice(_NEGATIVE), "SSL - of Mbed TLS"),
                OSError(dice.choice(("no number", None))),
                OSError(),
                ValueError("the certificate is not trusted"),
                MemoryError(),
            )
        )
