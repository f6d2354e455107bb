# Runs on an RP2 board after reserve.py: keeps blocks for the journal in a filesystem
# that was not made by `make image`.  `count` blocks; set by the sender.
import os

import rp2


class Files:
    def __init__(self, flash):
        self._flash = flash
        self._buf = bytearray(64)

    def mkdir(self, path):
        os.mkdir(path)

    def write(self, path, data):
        with open(path, "wb") as file:
            file.write(data)

    def remove(self, path):
        os.remove(path)

    def find(self, tag):
        for block in range(self._flash.ioctl(4, 0)):
            self._flash.readblocks(block, self._buf, 0)
            if self._buf.startswith(tag):
                return block


def is_reserved():
    try:
        os.stat(PLACE)
    except OSError:
        return False
    return True


def begin_anew():
    # Remove what an interrupted attempt left.
    try:
        for name in os.listdir(FOLDER):
            os.remove(FOLDER + "/" + name)
        os.rmdir(FOLDER)
    except OSError:
        pass


if not is_reserved():
    begin_anew()
    _flash = rp2.Flash()
    try:
        _first = reserve(Files(_flash), count)
    except OSError:
        begin_anew()
        raise
    for _block in range(_first, _first + count):
        _flash.ioctl(6, _block)
print("{}")
