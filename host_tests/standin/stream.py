"""Streams without a network behind them: what `connect(stream=…)` takes, and sockets are.

They never block; each plays network and broker at once.  Run under CPython and MicroPython.
"""


class Misuse(Exception):
    """The client did to a stream what it never may do."""


class ScriptedStream:
    """A MicroPython stream without a network behind it.

    Reads `read_most` bytes at a time, 0 for any number; takes `write_most` bytes
    at a time and then none for one call.  While `is_blocked`, nothing can be
    written.  `write_error` is raised by `write()`, once it took all of `takes`.
    """

    def __init__(self, read_most=0, write_most=0):
        self.read_most = read_most
        self.write_most = write_most
        self.is_blocked = False
        self.takes = -1  # so many writes more, then none; -1: any number
        self._is_full = False
        self.is_closed = False
        self.write_error = None
        self.writes = []  # the sizes that were offered to write()
        self.sent = b""  # what the client wrote and no test took yet
        self._pieces = []
        self._at = 0  # what of the first one was read
        self._answers = []

    def feed(self, *pieces):
        """Let the client read these: bytes, None for "nothing now", b"" for the
        end of the stream, an OSError to be raised; the last two for ever."""
        self._pieces.extend(pieces)

    def answer(self, request, reply):
        """As soon as the client has written `request` (whole), feed `reply`."""
        self._answers.append((request, reply))

    def has_answered(self):
        """Did the client write every request?"""
        return not self._answers

    def take(self):
        """-> all that the client has written since the last call."""
        sent = self.sent
        self.sent = b""
        return sent

    def readinto(self, buf, n=None):
        assert not self.is_closed, "read after close"
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
        n = min(len(buf) if n is None else n, left, self.read_most or left)
        buf[:n] = piece[self._at : self._at + n]
        self._at += n
        if piece and n == left:
            del self._pieces[0]
            self._at = 0
        return n

    def write(self, buf, off, n):
        assert not self.is_closed, "write after close"
        assert n > 0, "write of nothing"
        self.writes.append(n)
        if self.write_error and self.takes <= 0:
            raise self.write_error
        if self.is_blocked or self._is_full or not self.takes:
            self._is_full = False
            return None
        self.takes -= 1
        if 0 < self.write_most < n:
            n = self.write_most
            self._is_full = True
        self.sent += bytes(buf[off : off + n])
        while self._answers and self.sent.startswith(self._answers[0][0]):
            request, reply = self._answers.pop(0)
            self.sent = self.sent[len(request) :]
            self.feed(reply)
        return n

    def close(self):
        self.is_closed = True

    def setblocking(self, *args):
        pass

    setsockopt = connect = setblocking


class FixedStream:
    """Allocates nothing, for tests with the heap locked; `room`: how much `write()` takes;
    `is_ended`: nothing comes any more."""

    def __init__(self, size=8192):
        self.incoming = bytearray(size)
        self.outgoing = bytearray(size)
        self.pos = self.end = self.out = 0
        self.read_most = size
        self.room = size
        self.is_ended = False

    def feed(self, data):
        """Let the client read `data` next; copies in a loop, so allocates nothing."""
        if self.pos == self.end:
            self.pos = self.end = 0
        end = self.end
        for byte in data:
            self.incoming[end] = byte
            end += 1
        self.end = end

    def take(self):
        """-> what was written since the last call; allocates."""
        sent = bytes(self.outgoing[: self.out])
        self.out = 0
        return sent

    def readinto(self, buf, n):
        left = self.end - self.pos
        if not left:
            return 0 if self.is_ended else None
        if n > left:
            n = left
        if n > self.read_most:
            n = self.read_most
        pos = self.pos
        for i in range(n):
            buf[i] = self.incoming[pos]
            pos += 1
        self.pos = pos
        return n

    def write(self, buf, off, n):
        if n > self.room:
            n = self.room
        if not n:
            return None
        self.room -= n
        out = self.out
        for i in range(n):
            self.outgoing[out] = buf[off + i]
            out += 1
        self.out = out
        return n

    def close(self):
        pass


class WatchfulStream:
    """Gives `data` in pieces of `size` bytes, 0 for whole, with nothing in between.

    Raises Misuse for what no stream has to bear, and for more calls than the data has bytes for.
    """

    def __init__(self, data: bytes, size: int, ends: bool, stalls: bool):
        self.data = data
        self.pos = 0
        self.size = size or len(data) or 1
        self.left = self.size  # of this piece
        self.ends = ends
        self.room = 5 if stalls else 1 << 30
        self.is_full = False
        self.steps = 0
        self.most_steps = 60 + 8 * len(data)
        self.sent = bytearray()
        self.is_closed = False

    def is_drained(self) -> bool:
        return self.pos == len(self.data)

    def _count(self) -> None:
        self.steps += 1
        if self.is_closed:
            raise Misuse("uses a stream that it has closed")
        if self.steps > self.most_steps:
            raise Misuse("takes more steps than the input has bytes for")

    def readinto(self, buf: bytearray, n: int) -> int | None:
        self._count()
        if n <= 0 or n > len(buf):
            raise Misuse(f"reads {n} bytes into a buffer of {len(buf)}")
        if self.is_drained():
            return 0 if self.ends else None
        if not self.left:
            self.left = self.size
            return None
        n = min(n, self.left, len(self.data) - self.pos)
        buf[:n] = self.data[self.pos : self.pos + n]
        self.pos += n
        self.left -= n
        return n

    def write(self, buf: bytearray, off: int, n: int) -> int | None:
        self._count()
        if not 0 <= off < off + n <= len(buf):
            raise Misuse(f"writes {n} bytes at {off} of a buffer of {len(buf)}")
        if self.is_full:
            self.is_full = False
            return None
        if n > self.room:
            n = self.room
            self.is_full = True
        self.sent += buf[off : off + n]
        return n

    def close(self) -> None:
        self.is_closed = True
