"""A model of NOR flash behind MicroPython's block protocol, for tests and simulation.

Bits only fall when programming and rise only by erasing a whole block; programs are
whole aligned units and never ask a 0 to become 1; every block counts its wear.  The
power can be cut at any operation (`watch`), which `cut` undoes or tears; operations can
fail; blocks can be worn out, bits fall by themselves.  No clock; one seed, one result.
"""

import random

UNDONE = "undone"
DONE = "done"
TORN_PREFIX = "torn prefix"
TORN_BITS = "torn bits"
MODES = (UNDONE, DONE, TORN_PREFIX, TORN_BITS)

_BLOCK_COUNT, _BLOCK_BYTES, _ERASE = 4, 5, 6


class WrongUse(AssertionError):
    """The flash was asked for what its data sheet forbids."""


class Flash:
    """`block_count` blocks of `block_bytes` (the erase unit), programmed in units of
    `program_bytes`.  `image`: initial contents, erased if not given."""

    def __init__(self, block_count, block_bytes=4096, program_bytes=256, image=None):
        self.block_count = block_count
        self.block_bytes = block_bytes
        self.program_bytes = program_bytes
        size = block_count * block_bytes
        self.data = bytearray(b"\xff" * size) if image is None else bytearray(image)
        if len(self.data) != size:
            raise ValueError(f"image has {len(self.data)} bytes, not {size}")
        self.wear = [0] * block_count
        self.programs = 0  # units programmed
        self.operations = 0  # program and erase calls
        self.worn: dict[int, bool] = {}  # block -> does it say so, or keep wrong bits in silence
        self.watch = None  # watch(address, before, after), called before each operation
        self.watch_read = None  # watch_read(), called before each read
        self._failures = 0

    @property
    def erases(self):
        return sum(self.wear)

    def fail_at(self, operation, count):
        """From the operation with this number on so many fail; each leaves nothing or half."""
        self._failures = count
        self._fail_at = operation

    # --- MicroPython's block protocol ---------------------------------------------

    def readblocks(self, block, buf, offset=0):
        """Fill `buf` from `offset` in `block` on, without an offset from several blocks."""
        n = len(buf)
        at = block * self.block_bytes + offset
        if at < 0 or at + n > len(self.data) or offset and offset + n > self.block_bytes:
            raise WrongUse(f"read of {n} bytes at {offset} leaves block {block} or the flash")
        if self.watch_read:
            self.watch_read()
        buf[:] = self.data[at : at + n]

    def writeblocks(self, block, buf, offset=None):
        """Program `buf`; without `offset` erase first, as the protocol says."""
        if offset is None:
            for i in range(len(buf) // self.block_bytes):
                self._erase(block + i)
            offset = 0
        at = self._address(block, offset, len(buf))
        if at % self.program_bytes or len(buf) % self.program_bytes or not buf:
            raise WrongUse(f"program of {len(buf)} bytes at {at}: not whole aligned units")
        before = self.data[at : at + len(buf)]
        if block not in self.worn and int.from_bytes(buf) & ~int.from_bytes(before):
            raise WrongUse(f"program at {at} would turn a 0 into a 1")
        if self._change(block, at, bytes(buf)):
            self.programs += len(buf) // self.program_bytes

    def ioctl(self, op, arg):
        """Block count (4), block size (5), erase (6); sync (3) and the rest do nothing."""
        if op == _BLOCK_COUNT:
            return self.block_count
        if op == _BLOCK_BYTES:
            return self.block_bytes
        if op == _ERASE:
            self._erase(arg)
        return 0

    def spoil(self, at, mask=0x10):
        """Bits of the byte at this address turn, which nobody is told."""
        self.data[at] ^= mask

    # --- inside -----------------------------------------------------------------------

    def _address(self, block, offset, n):
        at = block * self.block_bytes + offset
        if not 0 <= at <= at + n <= len(self.data):
            raise WrongUse(f"{n} bytes at {at} are outside of the flash")
        return at

    def _erase(self, block):
        at = self._address(block, 0, self.block_bytes)
        if self._change(block, at, b"\xff" * self.block_bytes):
            self.wear[block] += 1

    def _change(self, block, at, after):
        # -> whether the block took it; one that is worn out may say so.
        if block in self.worn:
            self.operations += 1
            if self.worn[block]:
                raise OSError(5)
            return False
        if self.watch:
            self.watch(at, bytes(self.data[at : at + len(after)]), after)
        if self._failures and self.operations >= self._fail_at:
            self._failures -= 1
            if self._failures % 2:
                half = len(after) // 2
                self.data[at : at + half] = after[:half]
            raise OSError(5)
        self.data[at : at + len(after)] = after
        self.operations += 1
        return True


def cut(before, after, mode, seed=0):
    """What a cut in the given mode leaves of an operation from `before` to `after`."""
    if mode == UNDONE:
        return before
    if mode == DONE:
        return after
    source = random.Random(seed)
    if mode == TORN_PREFIX:
        n = source.randrange(len(after) + 1)
        return after[:n] + before[n:]
    # Torn bits: each that has to change did so or not; how many did is random as well.
    n = len(after)
    chosen = int.from_bytes(source.randbytes(n))
    more = source.random()
    if more < 0.25:
        chosen &= int.from_bytes(source.randbytes(n)) & int.from_bytes(source.randbytes(n))
    elif more > 0.75:
        chosen |= int.from_bytes(source.randbytes(n)) | int.from_bytes(source.randbytes(n))
    change = int.from_bytes(before) ^ int.from_bytes(after)
    return (int.from_bytes(before) ^ change & chosen).to_bytes(n)
