"""Stand-ins for the modules of real chips that reach the flash: esp32 and rp2.

Runs inside MicroPython.  Only what the firmware uses for its journal is there:
`esp32.Partition.find` and `rp2.Flash`, over the same flash image as the filesystem.
"""

import os
import sys

import interrupt

BLOCK = 4096
_READ, _WRITE = 100, 101  # beside the numbers of ioctl
_ERASED = b"\xff" * BLOCK

# Set first and cleared last, in no function of their own: Ctrl-C may come between.
_at_work = interrupt.flash_at_work

# The flash operation before which the power goes, counted from the start; 0: never.
_operations_left = int(os.getenv("CUT_AT_OPERATION") or 0)


def _operate():
    global _operations_left
    if _operations_left:
        _operations_left -= 1
        if not _operations_left:
            os.system("kill -9 $PPID")


class FlashArea:
    """Part of a flash image in the open `file`, as a block device of the extended protocol.

    A chip's flash driver is C code: Ctrl-C does not interrupt it, nor littlefs, which
    calls it; one that came in a step's first or last moment is put off and the step done
    again.  Nothing allocates: the journal writes with a locked heap.
    """

    def __init__(self, file, start, length):
        self._file = file
        self._start = start
        self._blocks = length // BLOCK
        self._page = bytearray(BLOCK)

    def readblocks(self, block, buf, offset=0):
        self._do(_READ, block, buf, offset)

    def writeblocks(self, block, buf, offset=None):
        self._do(_WRITE, block, buf, offset)

    def ioctl(self, op, arg):
        return self._do(op, arg, None, None)

    def _do(self, op, block, buf, offset):
        while True:
            try:
                _at_work[0] = 1
                interrupt.count_flash_call()
                if op == _READ:
                    self._seek(block, offset)
                    return self._file.readinto(buf)
                if op == _WRITE:
                    return self._write(block, buf, offset)
                return self._ioctl(op, block)
            except KeyboardInterrupt:
                interrupt.put_off()
            finally:
                _at_work[0] = 0

    def _write(self, block, buf, offset):
        _operate()
        if offset is None:
            self._seek(block, 0)
            self._file.write(buf)
        else:
            self._program(block, buf, offset)
        self._file.flush()

    def _program(self, block, buf, offset):
        # NOR flash: programming only clears bits.
        count = len(buf)
        self._seek(block, offset)
        self._file.readinto(self._page, count)
        for i in range(count):
            self._page[i] &= buf[i]
        self._seek(block, offset)
        self._file.write(self._page, count)

    def _ioctl(self, op, arg):
        if op == 4:
            return self._blocks
        if op == 5:
            return BLOCK
        if op == 6:
            _operate()
            self._seek(arg, 0)
            self._file.write(_ERASED)
            self._file.flush()
        return 0

    def _seek(self, block, offset):
        if not 0 <= block < self._blocks:
            raise OSError(22)
        self._file.seek(self._start + block * BLOCK + offset)


class _Module:
    pass


def install(port, file, fs_start, fs_length, journal_start, journal_length):
    """Put the modules of `port` in place: numbers are those of its profile, in bytes."""
    chip = _Module()
    if port == "rp2":

        def flash(start=0, len=fs_length):
            return FlashArea(file, fs_start + start, len)

        chip.Flash = flash
        sys.modules["rp2"] = chip
    elif port == "esp32":
        chip.Partition = _Module()
        chip.Partition.TYPE_DATA = 1
        areas = [FlashArea(file, journal_start, journal_length)] if journal_length else []
        chip.Partition.find = lambda kind, label: areas if label == "journal" else []
        sys.modules["esp32"] = chip
