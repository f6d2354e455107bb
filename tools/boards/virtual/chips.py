"""Stand-ins for the modules of real chips that reach the flash: esp32 and rp2.

Runs inside MicroPython.  Only what the firmware uses for its journal is there:
`esp32.Partition.find` and `rp2.Flash`, over the same flash image as the filesystem.
"""

import os
import sys

import micropython

BLOCK = 4096

# The flash operation before which the power goes, counted from the start; 0: never.
_operations_left = int(os.getenv("CUT_AT_OPERATION") or 0)


def _operate():
    global _operations_left
    if _operations_left:
        _operations_left -= 1
        if not _operations_left:
            os.system("kill -9 $PPID")


def _undisturbed(step, *args):
    # A chip's flash driver is C code that Ctrl-C does not interrupt; littlefs would
    # not stand an exception from here.  So the step is done again and the interrupt
    # comes afterwards.
    while True:
        try:
            return step(*args)
        except KeyboardInterrupt:
            micropython.schedule(_interrupt, None)


def _interrupt(_):
    os.system("kill -INT $PPID")


class FlashArea:
    """Part of a flash image in the open `file`, as a block device of the extended protocol."""

    def __init__(self, file, start, length):
        self._file = file
        self._start = start
        self._blocks = length // BLOCK

    def readblocks(self, block, buf, offset=0):
        _undisturbed(self._read, block, buf, offset)

    def writeblocks(self, block, buf, offset=None):
        _operate()
        if offset is None:
            _undisturbed(self._write, block, buf, 0)
        else:
            # NOR flash: programming only clears bits.
            old = bytearray(len(buf))
            self.readblocks(block, old, offset)
            if old != b"\xff" * len(buf):
                buf = bytes(a & b for a, b in zip(old, buf))
            _undisturbed(self._write, block, buf, offset)

    def ioctl(self, op, arg):
        if op == 4:
            return self._blocks
        if op == 5:
            return BLOCK
        if op == 6:
            _operate()
            _undisturbed(self._write, arg, b"\xff" * BLOCK, 0)
        return 0

    def _seek(self, block, offset):
        if not 0 <= block < self._blocks:
            raise OSError(22)
        self._file.seek(self._start + block * BLOCK + offset)

    def _read(self, block, buf, offset):
        self._seek(block, offset)
        self._file.readinto(buf)

    def _write(self, block, buf, offset):
        self._seek(block, offset)
        self._file.write(buf)
        self._file.flush()


class _Module:
    pass


def install(mcu, file, fs_start, fs_length, journal_start, journal_length):
    """Put the modules of `mcu` in place: numbers are those of its profile, in bytes."""
    chip = _Module()
    if mcu[:3] == "rp2":

        def flash(start=0, len=fs_length):
            return FlashArea(file, fs_start + start, len)

        chip.Flash = flash
        sys.modules["rp2"] = chip
    elif mcu[:3] == "esp":
        chip.Partition = _Module()
        chip.Partition.TYPE_DATA = 1
        area = FlashArea(file, journal_start, journal_length)
        chip.Partition.find = lambda kind, label: [area] if label == "journal" else []
        sys.modules["esp32"] = chip
