"""Streams without a network behind them: what `connect(stream=…)` takes, and sockets are.

They never block; each plays network and broker at once.  Run under CPython and MicroPython.
"""

_FIXED_BYTES = 8192


class _Stream:
    """Takes `write_most` bytes at a time, 0 for any number, and then none for one call.  While
    `is_blocked`, nothing can be written.  `write_error` is raised by `write()`, once it took all
    of `takes`."""

    def __init__(self, read_most=0, write_most=0):
        self.read_most = read_most  # bytes at a time, 0 for any number
        self.write_most = write_most
        self.is_blocked = False
        self.takes = -1  # so many writes more, then none; -1: any number
        self._is_full = False
        self.is_closed = False
        self.write_error = None
        self._answers = []

    def answer(self, request, reply):
        """As soon as the client has written `request` (whole), feed `reply`."""
        self._answers.append((request, reply))

    def _taken(self, n):
        # -> how many of `n` bytes are taken now, None if there is no room.
        if self.write_error and self.takes <= 0:
            raise self.write_error
        if self.is_blocked or self._is_full or not self.takes:
            self._is_full = False
            return None
        self.takes -= 1
        if 0 < self.write_most < n:
            self._is_full = True
            return self.write_most
        return n

    def close(self):
        self.is_closed = True

    def setblocking(self, *args):
        pass

    setsockopt = connect = setblocking


class ScriptedStream(_Stream):
    """A MicroPython stream without a network behind it.

    Raises AssertionError for what no stream has to bear.
    """

    def __init__(self, read_most=0, write_most=0):
        super().__init__(read_most, write_most)
        self.writes = []  # the sizes that were offered to write()
        self.sent = b""  # what the client wrote and no test took yet
        self._pieces = []
        self._at = 0  # what of the first one was read

    def feed(self, *pieces):
        """Let the client read these: bytes, None for "nothing now", b"" for the
        end of the stream, an OSError to be raised; the last two for ever."""
        self._pieces.extend(pieces)

    def has_answered(self):
        """Did the client write every request?"""
        return not self._answers

    def take(self):
        """-> all that the client has written since the last call."""
        sent = self.sent
        self.sent = b""
        return sent

    def readinto(self, buf, n=None):
        n = len(buf) if n is None else n
        assert not self.is_closed, "read after close"
        assert 0 < n <= len(buf), "reads %d bytes into a buffer of %d" % (n, len(buf))
        if not self._pieces:
            return None
        piece = self._pieces[0]
        if piece is None:
            del self._pieces[0]
            return None
        if isinstance(piece, OSError):
            raise piece
        # What came in several pieces is read at once, as from TCP.
        while piece and len(self._pieces) > 1 and isinstance(self._pieces[1], bytes):
            if not self._pieces[1]:
                break
            piece = self._pieces[0] = piece[self._at :] + self._pieces.pop(1)
            self._at = 0
        left = len(piece) - self._at
        n = min(n, left, self.read_most or left)
        buf[:n] = piece[self._at : self._at + n]
        self._at += n
        if piece and n == left:
            del self._pieces[0]
            self._at = 0
        return n

    def write(self, buf, off, n):
        assert not self.is_closed, "write after close"
        assert 0 <= off < off + n <= len(buf), "writes %d bytes at %d of %d" % (n, off, len(buf))
        self.writes.append(n)
        n = self._taken(n)
        if n is None:
            return None
        self.sent += bytes(buf[off : off + n])
        while self._answers and self.sent.startswith(self._answers[0][0]):
            request, reply = self._answers.pop(0)
            self.sent = self.sent[len(request) :]
            self.feed(reply)
        return n


class FixedStream(_Stream):
    """The same, as far as it needs no memory, for tests with the heap locked.  An answer is there
    at once."""

    def __init__(self, read_most=0, write_most=0):
        super().__init__(read_most, write_most)
        self._incoming, self._outgoing = bytearray(_FIXED_BYTES), bytearray(_FIXED_BYTES)
        self._pos = self._end = self._out = 0
        self._is_ended = False
        self._read_error = None

    @property
    def sent(self):
        return bytes(self._outgoing[: self._out])

    def feed(self, *pieces):
        if self._pos == self._end:
            self._pos = self._end = 0
        for piece in pieces:
            if isinstance(piece, OSError):
                self._read_error = piece
            elif piece is not None:
                self._is_ended = not piece
                self._incoming[self._end : self._end + len(piece)] = piece
                self._end += len(piece)

    def answer(self, request, reply):
        super().answer(request, reply)
        self.feed(reply)

    def has_answered(self):
        """Did the client write every request?  They are taken, then."""
        sent = self.sent
        for request, _ in self._answers:
            if not sent.startswith(request):
                return False
            sent = sent[len(request) :]
        self._answers = []
        self._out = len(sent)
        self._outgoing[: self._out] = sent
        return True

    def take(self):
        """-> what was written since the last call and is no request; allocates."""
        self.has_answered()
        sent = self.sent
        self._out = 0
        return sent

    def readinto(self, buf, n):
        pos = self._pos
        left = self._end - pos
        if not left:
            if self._read_error:
                raise self._read_error
            return 0 if self._is_ended else None
        if n > left:
            n = left
        if 0 < self.read_most < n:
            n = self.read_most
        for i in range(n):
            buf[i] = self._incoming[pos]
            pos += 1
        self._pos = pos
        return n

    def write(self, buf, off, n):
        n = self._taken(n)
        if n:
            out = self._out
            for i in range(n):
                self._outgoing[out] = buf[off + i]
                out += 1
            self._out = out
        return n


class WatchfulStream(ScriptedStream):
    """Raises AssertionError for more calls than its data has bytes for, too; `stalls`: it takes
    only a few bytes at a time."""

    def __init__(self, data, size, ends, stalls):
        super().__init__(0, 5 if stalls else 0)
        self.give(data, size, ends)

    def give(self, data, size, ends):
        """From now on it gives `data` in pieces of `size` bytes, 0 for whole, with nothing in
        between."""
        self._pieces, self._at = [data] if data else [], 0
        if ends:
            self.feed(b"")
        self._size = self.read_most = size or len(data)
        self._steps_left = 150 + 12 * len(data)

    def is_drained(self):
        return not any(self._pieces)

    def _count(self):
        self._steps_left -= 1
        assert self._steps_left >= 0, "takes more steps than the input has bytes for"

    def readinto(self, buf, n=None):
        self._count()
        if not self.read_most and not self.is_drained():
            self.read_most = self._size
            return None
        n = super().readinto(buf, n)
        self.read_most -= n or 0
        return n

    def write(self, buf, off, n):
        self._count()
        return super().write(buf, off, n)
