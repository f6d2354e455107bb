"""A flash in RAM that fails when told to, and one that allocates nothing while it is used.

MicroPython's block device protocol, as littlefs and FAT ask it: programs only clear
bits, and a program without an offset erases its blocks first.  Runs under CPython and
MicroPython; `host_tests.standin.nor` is the model with wear, cuts and rules of use.
"""


class RamFlash:
    """`blocks` of `block_bytes`; `data`: its contents, erased if not given.

    For `failures` more operations, below 0 for ever, programming and erasing raise OSError and
    change nothing.  `hook(at, after)` is called before each operation.
    """

    def __init__(self, blocks: int, block_bytes: int = 4096, data: bytearray | None = None):
        self._blocks = blocks
        self._block_bytes = block_bytes
        self._erased = b"\xff" * block_bytes
        self.data = bytearray(b"\xff" * (blocks * block_bytes)) if data is None else data
        self.failures = 0
        self.operations = 0  # that worked
        self.erased = 0  # blocks
        self.hook = None

    def readblocks(self, block, buf, offset=0):
        at = block * self._block_bytes + offset
        buf[:] = memoryview(self.data)[at : at + len(buf)]

    def writeblocks(self, block, buf, offset=None):
        """Program `buf`; without `offset` erase its blocks first."""
        at = block * self._block_bytes
        if offset is None:
            for i in range(len(buf) // self._block_bytes):
                self._erase(block + i)
        else:
            at += offset
        self._begin(at, buf)
        self._program(at, buf)

    def _program(self, at, buf):
        n = len(buf)
        before = int.from_bytes(self.data[at : at + n], "big")
        self.data[at : at + n] = (before & int.from_bytes(buf, "big")).to_bytes(n, "big")

    def ioctl(self, op, arg):
        """Block count (4), block size (5), erase (6)."""
        if op == 6:
            self._erase(arg)
        return self._blocks if op == 4 else self._block_bytes if op == 5 else 0

    def _erase(self, block):
        at = block * self._block_bytes
        self._begin(at, None)
        self._clear(at)
        self.erased += 1

    def _clear(self, at):
        self.data[at : at + self._block_bytes] = self._erased

    def _begin(self, at, after):
        if self.failures:
            self.failures -= 1
            raise OSError(5)
        if self.hook:
            self.hook(at, self._erased if after is None else bytes(after))
        self.operations += 1


class FixedFlash(RamFlash):
    """Allocates nothing, for tests with the heap locked; much slower."""

    def readblocks(self, block, buf, offset=0):
        at = block * self._block_bytes + offset
        for i in range(len(buf)):
            buf[i] = self.data[at + i]

    def _program(self, at, buf):
        for i in range(len(buf)):
            self.data[at + i] &= buf[i]

    def _clear(self, at):
        for i in range(at, at + self._block_bytes):
            self.data[i] = 0xFF
