"""What an RP2 program says about itself: the Pico SDK's "binary info" in its flash.

MicroPython declares the area of its filesystem there, so a tool need not guess.
Layout: `pico/binary_info/structure.h` and `defs.h` of the Pico SDK.
"""

import struct

from .uf2 import FLASH_BASE

_MARKER_START = 0x7188EBF2
_MARKER_END = 0xE71AA390
_SEARCH_BYTES = 2048
_ID_AND_STRING = 6
_BLOCK_DEVICE = 7
_ID_BOARD = 0xB63CFFBB


def read_binary_info(memory):
    """{"board": name, "filesystem": (offset, size)} as far as `memory` (from flash 0) says."""
    found = {}
    for entry in _entries(memory):
        kind = struct.unpack_from("<H", memory, entry)[0]
        if kind == _ID_AND_STRING:
            name, text = struct.unpack_from("<II", memory, entry + 4)
            if name == _ID_BOARD:
                found["board"] = _string(memory, text - FLASH_BASE)
        elif kind == _BLOCK_DEVICE:
            address, size = struct.unpack_from("<II", memory, entry + 8)
            found["filesystem"] = (address - FLASH_BASE, size)
    return found


def _entries(memory):
    # Offsets of the entries; none when there is no valid header.
    for at in range(0, min(_SEARCH_BYTES, len(memory) - 20), 4):
        start, first, last, _, end = struct.unpack_from("<5I", memory, at)
        if start == _MARKER_START and end == _MARKER_END:
            for slot in range(first - FLASH_BASE, last - FLASH_BASE, 4):
                if 0 <= slot <= len(memory) - 4:
                    entry = struct.unpack_from("<I", memory, slot)[0] - FLASH_BASE
                    if 0 <= entry <= len(memory) - 20:
                        yield entry
            return


def _string(memory, at):
    return bytes(memory[at : memory.find(b"\0", at)]).decode(errors="replace")
