"""A flash in RAM under MicroPython that allocates nothing while it is used."""

BLOCK_BYTES = 4096


class RamFlash:
    """`erased` counts erases; programming only clears bits."""

    def __init__(self, blocks):
        self._blocks = blocks
        self.erased = 0
        self._data = bytearray(b"\xff" * (blocks * BLOCK_BYTES))

    def readblocks(self, block, buf, offset=0):
        at = block * BLOCK_BYTES + offset
        for i in range(len(buf)):
            buf[i] = self._data[at + i]

    def writeblocks(self, block, buf, offset=0):
        at = block * BLOCK_BYTES + offset
        for i in range(len(buf)):
            self._data[at + i] &= buf[i]

    def ioctl(self, op, arg):
        if op == 6:
            self.erased += 1
            at = arg * BLOCK_BYTES
            for i in range(at, at + BLOCK_BYTES):
                self._data[i] = 0xFF
        return self._blocks if op == 4 else BLOCK_BYTES
