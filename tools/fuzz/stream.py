"""The world around a fuzzed client: a stream that gives hostile bytes, and a clock."""

from tools.sim.clock import Clock


class Finding(Exception):
    """The client did what it never may do."""


class World:
    """What `injected` asks of a world: a clock that turns when slept on.

    It turns fast once the broker has nothing more to say: all that is left to
    wait for then is a time-out.
    """

    seed = 1

    def __init__(self) -> None:
        self.now = 0
        self.clock = Clock(self)
        self.stream: Stream | None = None

    def sleep(self, ms: int) -> None:
        is_over = self.stream is not None and self.stream.is_drained()
        self.now += 100 * ms if is_over else ms

    def open_link(self) -> None:
        raise OSError("only streams here")


class Stream:
    """Gives `data` in pieces of `size` bytes, 0 for whole, with nothing in between."""

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
            raise Finding("uses a stream that it has closed")
        if self.steps > self.most_steps:
            raise Finding("takes more steps than the input has bytes for")

    def readinto(self, buf: bytearray, n: int) -> int | None:
        self._count()
        if n <= 0 or n > len(buf):
            raise Finding(f"reads {n} bytes into a buffer of {len(buf)}")
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
            raise Finding(f"writes {n} bytes at {off} of a buffer of {len(buf)}")
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
