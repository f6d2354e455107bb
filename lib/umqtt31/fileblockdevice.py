"""FileBlockDevice: MicroPython's block device protocol over a file.

For the desk, and for boards that have a littlefs filesystem but no flash to spare.
What `writeblocks` wrote is durable when it returns: `flush()` commits the file, and on a
computer it is synchronized, too.  On littlefs each write copies the file from there to
its end, so keep it small, or use the flash itself.  FAT is refused: it erases a sector
in place and programs it again, so a cut between the two takes what was there before.
"""

import os

from micropython import const

_SYNC = const(3)
_BLOCK_COUNT = const(4)
_BLOCK_BYTES = const(5)
_ERASE = const(6)
_BLANK = b"\xff" * 256
_ENOENT = const(2)
_ENOMEM = const(12)
_EINVAL = const(22)


def _is_on_fat(path):
    # MicroPython does not name its filesystems; FAT alone calls such a name invalid.
    if hasattr(os, "fsync"):
        return False  # a computer's, which journals its own writes
    try:
        os.stat(path + "?")
    except OSError as error:
        return error.args[0] == _EINVAL
    return False


class FileBlockDevice:
    """`block_count` blocks of `block_size` bytes in the file `path`.

    The file is made, or filled up, with 0xFF; what it has beyond is left alone.  Raises
    OSError, TypeError; ValueError, also if it would lie on FAT.
    """

    def __init__(self, path, block_count, block_size=4096):
        for number in (block_count, block_size):
            if not isinstance(number, int):
                raise TypeError("block_count and block_size must be ints, not %r" % (number,))
            if number < 1:
                raise ValueError("block_count and block_size must be 1 or more")
        if _is_on_fat(path):
            text = "%s would lie on FAT, where a power cut loses whole sectors"
            raise ValueError(text % path + ": use littlefs or the flash itself")
        self._block_count = block_count
        self._block_bytes = block_size
        self._path = path
        try:
            self._file = open(path, "r+b")
        except OSError as error:
            if error.args[0] != _ENOENT:
                raise  # what is there may be a journal
            self._file = open(path, "w+b")
        self._is_written = True
        # One that was opened with too many blocks has to be good for fewer again: a journal
        # knows how many it had.
        n = self._file.seek(0, 2)
        self._write(n, _BLANK, block_count * block_size - n)

    def readblocks(self, block, buf, offset=0):
        """Fill `buf` with what is at `offset` in `block`."""
        self._at(block * self._block_bytes + offset).readinto(buf)

    def writeblocks(self, block, buf, offset=0):
        """Write `buf` at `offset` in `block`; it is durable on return."""
        self._write(block * self._block_bytes + offset, buf, len(buf))

    def ioctl(self, op, arg):
        """Block count (4), block size (5), erase block `arg` (6), sync (3)."""
        if op == _BLOCK_COUNT:
            return self._block_count
        if op == _BLOCK_BYTES:
            return self._block_bytes
        if op == _ERASE:
            self._write(arg * self._block_bytes, _BLANK, self._block_bytes)
        elif op == _SYNC:
            self._write(0, _BLANK, 0)
        return 0

    def close(self):
        """Close the file."""
        self._file.close()

    def _at(self, at):
        if not self._is_written:
            self._open()
        self._file.seek(at)
        return self._file

    def _open(self):
        # Again, as the next flush() would write what one could not.
        try:
            self._file.close()
        except OSError:
            pass
        try:
            self._file = open(self._path, "r+b")
        except MemoryError:
            raise OSError(_ENOMEM)
        self._is_written = True

    def _write(self, at, buf, n):
        # `n` bytes: `buf` over and over, then 0xFF.
        file = self._at(at)
        self._is_written = False
        while n >= len(buf) > 0:
            file.write(buf)
            n -= len(buf)
        for _ in range(n):
            file.write(b"\xff")
        file.flush()
        # MicroPython's flush() synchronizes the file itself, and has no fsync.
        if hasattr(os, "fsync"):
            os.fsync(file.fileno())
        self._is_written = True
