"""A journal on a flash that fails when told to.

Runs under CPython and MicroPython; a client that is made anew on the same flash is
one after a reset.
"""

from host_tests.standin.ramflash import RamFlash
from umqtt31 import Journal

_PROGRAM_BYTES = 128
_ERASE_BYTES = 1024


class FailingFlash(RamFlash):
    """Small, so that a journal on it is soon full."""

    def __init__(self, blocks=8):
        super().__init__(blocks, _ERASE_BYTES)

    readable_from = 0

    def forget(self):
        """What was programmed until now cannot be read; the rest goes on."""
        self.readable_from = len(bytes(self.data).rstrip(b"\xff"))

    def readblocks(self, block, buf, offset=0):
        if block * _ERASE_BYTES + offset < self.readable_from:
            raise OSError(5)
        super().readblocks(block, buf, offset)

    def journal(self, **options):
        """A Journal on it, as each life of a device makes one."""
        return Journal(self, program_bytes=_PROGRAM_BYTES, erase_bytes=_ERASE_BYTES, **options)
