"""UF2 files for RP2040 and RP2350: read into memory pages, written from them.

A UF2 file is 512-byte blocks of 256 bytes of flash each.  Block numbers count per
family; the RP2350's files begin with one block of another family (erratum E10),
which is kept as it is.  Format: the `uf2.h` of the Pico SDK; what a program says about
itself, its "binary info": `pico/binary_info/structure.h` and `defs.h`.
"""

import struct
from dataclasses import dataclass

from .errors import BoardError

BLOCK_BYTES = 512
PAYLOAD_BYTES = 256
FLASH_BASE = 0x10000000
_FLASH_END = 0x11000000  # of the largest chip
_NAMES = {
    0xE48BFF56: "RP2040",
    0xE48BFF57: "any RP2 chip (absolute)",
    0xE48BFF58: "RP2350 data",
    0xE48BFF59: "RP2350 (Arm)",
    0xE48BFF5A: "RP2350 (RISC-V)",
    0xE48BFF5B: "RP2350 (Arm, non-secure)",
}
_ABSOLUTE = 0xE48BFF57
_MAGIC_START = (0x0A324655, 0x9E5D5157)
_MAGIC_END = 0x0AB16F30
_HAS_FAMILY = 0x2000
_HEADER = struct.Struct("<8I")
_TAIL = struct.Struct("<I")
_INFO_START = 0x7188EBF2
_INFO_END = 0xE71AA390
_INFO_WITHIN = 2048
_BLOCK_DEVICE = 7
_BROKEN = "not a whole UF2 file"
_AGAIN = "download (or make) it again"


@dataclass
class Uf2:
    """`pages` maps flash offsets to 256 bytes; `prelude` are foreign blocks, verbatim."""

    family: int
    pages: dict
    prelude: bytes = b""

    @property
    def end(self):
        """Flash offset behind the last page."""
        return max(self.pages) + PAYLOAD_BYTES

    def memory(self):
        """The flash content from offset 0 to `end`, gaps as 0xFF."""
        data = bytearray(b"\xff" * self.end)
        for offset, page in self.pages.items():
            data[offset : offset + PAYLOAD_BYTES] = page
        return data


def family_name(family):
    """What a family id stands for, for messages."""
    return _NAMES.get(family, f"family {family:#010x}")


def read_uf2(data, where):
    """Parse a UF2 file; BoardError beginning with `where` when it is none."""
    if not data or len(data) % BLOCK_BYTES:
        raise BoardError(f"{where}: {_BROKEN}, of {len(data)} bytes; {_AGAIN}")
    pages, families, prelude = {}, set(), b""
    for start in range(0, len(data), BLOCK_BYTES):
        header = _HEADER.unpack_from(data, start)
        (end,) = _TAIL.unpack_from(data, start + BLOCK_BYTES - _TAIL.size)
        if header[:2] != _MAGIC_START or end != _MAGIC_END:
            raise BoardError(f"{where}: {_BROKEN}: block {start // BLOCK_BYTES}; {_AGAIN}")
        _, _, flags, address, size, _, _, family = header
        if family == _ABSOLUTE or not flags & _HAS_FAMILY:
            prelude += data[start : start + BLOCK_BYTES]
            continue
        # A damaged address could ask for gigabytes of gaps.
        if size != PAYLOAD_BYTES or not FLASH_BASE <= address < _FLASH_END:
            raise BoardError(f"{where}: block {start // BLOCK_BYTES} does not go to flash")
        families.add(family)
        body = start + _HEADER.size
        pages[address - FLASH_BASE] = data[body : body + PAYLOAD_BYTES]
    if len(families) != 1:
        names = ", ".join(map(family_name, sorted(families))) or "no chip"
        raise BoardError(f"{where}: for {names}, allowed: one chip")
    return Uf2(families.pop(), pages, prelude)


def write_uf2(uf2):
    """The bytes of a UF2 file, blocks in order of address and numbered."""
    blocks = [uf2.prelude]
    for number, (offset, page) in enumerate(sorted(uf2.pages.items())):
        head = (_HAS_FAMILY, FLASH_BASE + offset, PAYLOAD_BYTES, number, len(uf2.pages))
        header = _HEADER.pack(*_MAGIC_START, *head, uf2.family)
        body = (header + page).ljust(BLOCK_BYTES - _TAIL.size, b"\0")
        blocks.append(body + _TAIL.pack(_MAGIC_END))
    return b"".join(blocks)


def find_filesystem(memory):
    """(offset, size) of the filesystem, as the program in `memory` (from flash 0) declares it."""
    for entry in _entries(memory):
        if struct.unpack_from("<H", memory, entry)[0] == _BLOCK_DEVICE:
            address, size = struct.unpack_from("<II", memory, entry + 8)
            return address - FLASH_BASE, size
    return None


def _entries(memory):
    # Offsets of the entries; none when there is no valid header.
    for at in range(0, min(_INFO_WITHIN, len(memory) - 20), 4):
        start, first, last, _, end = struct.unpack_from("<5I", memory, at)
        if start == _INFO_START and end == _INFO_END:
            slots = range(first - FLASH_BASE, min(last - FLASH_BASE, len(memory) - 3), 4)
            for slot in slots if first >= FLASH_BASE else ():
                entry = struct.unpack_from("<I", memory, slot)[0] - FLASH_BASE
                if 0 <= entry <= len(memory) - 20:
                    yield entry
            return
