"""Runs /program.mpy of a ROMFS image, named by the last argument, that is mapped into memory,
outside the heap, as flash is."""

import os
import sys

import ffi
import uctypes
import vfs

_PROT_READ = 1
_MAP_PRIVATE = 2


def mapped(path):
    size = os.stat(path)[6]
    mmap = ffi.open(None).func("P", "mmap", "PLiiil")
    with open(path, "rb") as file:
        address = mmap(0, size, _PROT_READ, _MAP_PRIVATE, file.fileno(), 0)
    return uctypes.bytearray_at(address & 0xFFFFFFFF, size)


vfs.mount(vfs.VfsRom(mapped(sys.argv.pop())), "/rom")
sys.path[:] = ["/rom", ".frozen"]
__import__("program")
