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

    def journal(self, **options):
        """A Journal on it, as each life of a device makes one."""
        return Journal(self, program_bytes=_PROGRAM_BYTES, erase_bytes=_ERASE_BYTES, **options)
