"""A stream that allocates nothing, for tests with the heap locked.  MicroPython."""


class FixedStream:
    """Buffers of fixed size; `room` is how many bytes `write()` takes, `None` for all."""

    def __init__(self, size=8192):
        self.incoming = bytearray(size)
        self.outgoing = bytearray(size)
        self.pos = self.end = self.out = 0
        self.read_most = size
        self.room = size

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
            return None
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
