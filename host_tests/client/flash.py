"""A flash in RAM that fails when told to, and a journal on it.

Runs under CPython and MicroPython; a client that is made anew on the same flash is
one after a reset.
"""

from umqtt31 import Journal

_PROGRAM_BYTES = 128
_ERASE_BYTES = 1024


class FailingFlash:
    """MicroPython's block device protocol; while `is_failing`, or for `failures` more
    operations, programming and erasing raise OSError and change nothing."""

    def __init__(self, blocks=8):
        self._blocks = blocks
        self._data = bytearray(b"\xff" * (blocks * _ERASE_BYTES))
        self.is_failing = False
        self.failures = 0
        self.operations = 0  # that worked

    def readblocks(self, block, buf, offset=0):
        at = block * _ERASE_BYTES + offset
        for i in range(len(buf)):
            buf[i] = self._data[at + i]

    def writeblocks(self, block, buf, offset=0):
        self._work()
        at = block * _ERASE_BYTES + offset
        for i in range(len(buf)):
            self._data[at + i] &= buf[i]

    def ioctl(self, op, arg):
        if op == 6:
            self._work()
            at = arg * _ERASE_BYTES
            for i in range(at, at + _ERASE_BYTES):
                self._data[i] = 0xFF
        return self._blocks if op == 4 else _ERASE_BYTES if op == 5 else 0

    def _work(self):
        if self.failures:
            self.failures -= 1
            raise OSError(5)
        if self.is_failing:
            raise OSError(5)
        self.operations += 1

    def journal(self, **options):
        """A Journal on it, as each life of a device makes one."""
        return Journal(self, program_bytes=_PROGRAM_BYTES, erase_bytes=_ERASE_BYTES, **options)
