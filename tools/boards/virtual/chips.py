"""Stand-ins for the modules of real chips that reach the flash: esp32 and rp2.

Runs inside MicroPython.  Only what the firmware uses for its journal is there:
`esp32.Partition.find` and `rp2.Flash`, over the same flash image as the filesystem.
"""

import sys

BLOCK = 4096


class FlashArea:
    """Part of a flash image in a file, as a block device of the extended protocol."""

    def __init__(self, path, start, length):
        self._file = open(path, "r+b")
        self._start = start
        self._blocks = length // BLOCK

    def _seek(self, block, offset):
        if not 0 <= block < self._blocks:
            raise OSError(22)
        self._file.seek(self._start + block * BLOCK + offset)

    def readblocks(self, block, buf, offset=0):
        self._seek(block, offset)
        self._file.readinto(buf)

    def writeblocks(self, block, buf, offset=None):
        self._seek(block, offset or 0)
        if offset is not None:
            # NOR flash: programming only clears bits.
            old = self._file.read(len(buf))
            self._seek(block, offset)
            buf = bytes(a & b for a, b in zip(old, buf))
        self._file.write(buf)
        self._file.flush()

    def ioctl(self, op, arg):
        if op == 4:
            return self._blocks
        if op == 5:
            return BLOCK
        if op == 6:
            self._seek(arg, 0)
            self._file.write(b"\xff" * BLOCK)
            self._file.flush()
        return 0


class _Module:
    pass


def install(mcu, path, fs_start, fs_length, journal_start, journal_length):
    """Put the modules of `mcu` in place: numbers are those of its profile, in bytes."""
    chip = _Module()
    if mcu[:3] == "rp2":

        def flash(start=0, len=fs_length):
            return FlashArea(path, fs_start + start, len)

        chip.Flash = flash
        sys.modules["rp2"] = chip
    elif mcu[:3] == "esp":
        chip.Partition = _Module()
        chip.Partition.TYPE_DATA = 1
        area = FlashArea(path, journal_start, journal_length)
        chip.Partition.find = lambda kind, label: [area] if label == "journal" else []
        sys.modules["esp32"] = chip
