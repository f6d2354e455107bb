"""Records: a link under TLS, as the client's stream has it on a board.

What comes can be read when all of its record is there.  What is written is a record at once,
and goes out as the link takes it: until all of it did, the write takes nothing, and the next
one has to be given the same bytes, for which TLS takes them without a look.
"""

import random
from typing import Any

from .network import Link

_LONGEST_RECORD = 40  # that the broker sends
_LONGEST_JAM_MS = 40
_EOF = -0x7280  # of Mbed TLS: the end of the stream, within a record


class Records:
    """The stream of one connection; `seed` says where records end, and when there is no room."""

    def __init__(self, link: Link, seed: int):
        self._link = link
        self._dice = dice = random.Random(seed * 1000 + link.number)
        self._fullness = dice.choice((0, 0.2))  # how often there is no room
        self._unread = 0  # bytes of the record that is read
        self._given = self._rest = b""  # to the write that is not done; of it, what is not out
        self.close = link.close

    def setblocking(self, *_: Any) -> None:
        """As the link's."""

    setsockopt = connect = setblocking

    def readinto(self, buf: bytearray, n: int) -> int | None:
        """-> bytes read, None until a record is there, 0 at the end of the stream."""
        link = self._link
        arrived = link.arrived()
        if not self._unread:
            self._unread = min(self._dice.randint(1, _LONGEST_RECORD), link.unread_bytes())
        if arrived and arrived >= self._unread:
            n = link.readinto(buf, min(n, self._unread)) or 0
            self._unread -= n
            return n
        if arrived and link.is_at_end():
            raise OSError(_EOF, "SSL - The connection indicated an EOF")
        return None if arrived else link.readinto(buf, n)

    def write(self, buf: bytearray, off: int, n: int) -> int | None:
        """-> bytes taken, None while their record is not out."""
        link = self._link
        data = bytes(buf[off : off + n])
        if not self._rest:
            self._given = self._rest = data
        elif data != self._given:
            text = f"{data!r} follows {self._given!r}, which was not taken"
            link.world.rules.fail("TLS", text)
        now = link.world.now
        if link.jam_until <= now and self._dice.random() < self._fullness:
            link.jam_until = now + self._dice.randint(1, _LONGEST_JAM_MS)
        taken = link.write(self._rest, 0, len(self._rest)) or 0
        self._rest = self._rest[taken:]
        return None if self._rest else n
