"""Streams over a link, as a client may have them: under TLS, and doing all that a stream may."""

import random

_LONGEST_RECORD = 40  # that the broker sends
_LONGEST_JAM_MS = 40
_EOF = -0x7280  # of Mbed TLS: the end of the stream, within a record
# Of Linux, macOS and lwIP; with the other sign, as MicroPython's TLS has them; of Mbed TLS.
_NUMBERS = (1, 4, 5, 9, 12, 22, 32, 71, 95, 100, 101, 103, 104, 105, 110, 111, 112, 113)
_NEGATIVE = (-2, -11, -104, -0x6900, -0x7280)
# What a socket says while it connects: then it is no error.
_CONNECTING = (11, 35, 36, 37, 57, 107, 114, 115, 119, 120, 128)
_EBADF = 9


class _Stream:
    # Of one connection; `seed` says what it does when.

    def __init__(self, link, seed):
        self._link = link
        self._dice = random.Random(seed * 1000 + link.number)
        self.close = link.close
        self.setblocking = self.setsockopt = self.connect = link.setblocking


class Records(_Stream):
    """TLS, as a board has it.  What comes can be read when all of its record is there.  What is
    written is a record at once, and goes out as the link takes it: until all of it did, the
    write takes nothing, and the next one has to be given the same bytes, for which TLS takes
    them without a look."""

    def __init__(self, link, seed):
        super().__init__(link, seed)
        self._fullness = self._dice.choice((0, 0.2))  # how often there is no room
        self._unread = 0  # bytes of the record that is read
        self._given = self._rest = b""  # to the write that is not done; of it, what is not out

    def readinto(self, buf, n):
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

    def write(self, buf, off, n):
        """-> bytes taken, None while their record is not out."""
        link = self._link
        data = bytes(buf[off : off + n])
        if not self._rest:
            self._given = self._rest = data
        elif data != self._given:
            text = f"{data!r} follows {self._given!r}, which was not taken"
            link.world.rules.fail("TLS", text)
        if link.jam_until <= link.world.now and self._dice.random() < self._fullness:
            link.jam_until = link.world.now + self._dice.randint(1, _LONGEST_JAM_MS)
        taken = link.write(self._rest, 0, len(self._rest)) or 0
        self._rest = self._rest[taken:]
        return None if self._rest else n


class Unsteady(_Stream):
    """Gives and takes a few bytes, or none though there are some, says None or 0 where it takes
    none, ends at any moment, and raises whatever ports and TLS raise, from any call; of what a
    write that raises was given, all may have gone out, a part or nothing."""

    def __init__(self, link, seed):
        super().__init__(link, seed)
        dice = self._dice
        # How often each happens.
        self._short = dice.choice((0, 0.1, 0.5, 0.9))
        self._full = dice.choice((0, 0.1, 0.4))
        self._empty = dice.choice((0, 0.1, 0.4))
        self._failing = dice.choice((0, 0, 0.003, 0.02))
        self._no_room = dice.choice((None, None, 0))
        self._is_over = False
        self.close = self._close

    def readinto(self, buf, n):
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

    def write(self, buf, off, n):
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

    def _close(self):
        self._link.close()
        if self._dice.random() < 0.2:
            raise OSError(_EBADF)

    def _check(self):
        link, dice = self._link, self._dice
        if self._is_over:
            link.world.rules.fail("stream", "is used after it raised an error")
        if not link.notes.is_online and dice.random() < self._failing:
            raise OSError(dice.choice(_CONNECTING))

    def _error(self):
        # What is to be raised now, behind which nothing gets through.
        dice, link = self._dice, self._link
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
