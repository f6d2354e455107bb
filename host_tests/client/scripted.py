"""A stream that does what a test's script says.

Runs under CPython and under MicroPython; it never blocks and plays network and broker
at once.
"""


class ScriptedStream:
    """A MicroPython stream without a network behind it.

    Reads `read_most` bytes at a time, 0 for any number; takes `write_most` bytes
    at a time and then none for one call.  While `is_blocked`, nothing can be
    written.  `write_error` is raised by `write()`.
    """

    def __init__(self, read_most=0, write_most=0):
        self.read_most = read_most
        self.write_most = write_most
        self.is_blocked = False
        self._is_full = False
        self.is_closed = False
        self.write_error = None
        self.reads = 0  # calls of readinto()
        self.writes = []  # the sizes that were offered to write()
        self.sent = b""  # what the client wrote and no test took yet
        self._pieces = []
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
        self.reads += 1
        if not self._pieces:
            return None
        piece = self._pieces[0]
        if piece is None:
            del self._pieces[0]
            return None
        if isinstance(piece, OSError):
            raise piece
        n = min(len(buf) if n is None else n, len(piece), self.read_most or len(piece))
        for i in range(n):
            buf[i] = piece[i]
        if piece:
            if n == len(piece):
                del self._pieces[0]
            else:
                self._pieces[0] = piece[n:]
        return n

    def write(self, buf, off, n):
        assert not self.is_closed, "write after close"
        self.writes.append(n)
        if self.write_error:
            raise self.write_error
        if self.is_blocked or self._is_full:
            self._is_full = False
            return None
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
        """As a socket; it never blocks."""

    setsockopt = connect = setblocking
