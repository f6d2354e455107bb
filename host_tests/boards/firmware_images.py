"""Small stand-ins for MicroPython's published firmware, with valid headers.

Written from the formats' descriptions with their own few lines, so that a mistake
in the tools' readers cannot cancel itself out.
"""

import hashlib
import struct

CHIP_IDS = {
    "esp32": 0, "esp32s2": 2, "esp32c3": 5, "esp32s3": 9, "esp32c2": 12, "esp32c6": 13,
    "esp32h2": 16, "esp32p4": 18, "esp32c5": 23,
}  # fmt: skip
LOADER_AT = {"esp32": 0x1000, "esp32s2": 0x1000, "esp32c5": 0x2000, "esp32p4": 0x2000}
RP2040, RP2350_ARM, RP2350_RISCV, ABSOLUTE = (0xE48BFF56, 0xE48BFF59, 0xE48BFF5A, 0xE48BFF57)
XIP = 0x10000000


def esp_image(mcu, text):
    """A bootable image with one segment, checksum and SHA-256, as esptool writes them."""
    head = struct.pack("<BBBBI", 0xE9, 1, 2, 0x20, 0x40080400)
    head += struct.pack("<B3xHBHH4xB", 0xEE, CHIP_IDS[mcu], 0, 0, 0xFFFF, 1)
    data = text.ljust(256, b"\0")
    body = head + struct.pack("<II", 0x40080400, len(data)) + data
    body += b"\0" * (15 - len(body) % 16)
    checksum = 0xEF
    for byte in data:
        checksum ^= byte
    body += bytes([checksum])
    return body + hashlib.sha256(body).digest()


def esp_table(*entries):
    """A partition table of (label, type, subtype, offset, size)."""
    data = b"".join(
        struct.pack("<2sBBII16sI", b"\xaa\x50", kind, subtype, offset, size, label, 0)
        for label, kind, subtype, offset, size in entries
    )
    return data + b"\xeb\xeb" + b"\xff" * 14 + hashlib.md5(data).digest()


_FIRST = ((b"nvs", 1, 2, 0x9000, 0x6000), (b"phy_init", 1, 1, 0xF000, 0x1000))
_VFS = (b"vfs", 1, 0x81, 0x1E0000, 0x220000)
TODAY = (*_FIRST, (b"factory", 0, 0, 0x10000, 0x1F0000))
WITH_VFS = (*_FIRST, (b"factory", 0, 0, 0x10000, 0x1D0000), _VFS)


def esp_firmware(mcu, table=TODAY, machine=b""):
    """Boot loader, partition table and application, laid out as upstream's .bin."""
    base = LOADER_AT.get(mcu, 0)
    data = bytearray(b"\xff" * (0x10000 - base))
    boot = esp_image(mcu, b"boot loader")
    data[: len(boot)] = boot
    partitions = esp_table(*table)
    data[0x8000 - base : 0x8000 - base + len(partitions)] = partitions
    return bytes(data) + esp_image(mcu, b"application\0" + machine)


def uf2_block(address, page, number, count, family):
    """One UF2 block of 256 bytes."""
    head = (0x0A324655, 0x9E5D5157, 0x2000, address, 256, number, count, family)
    return struct.pack("<8I476sI", *head, page.ljust(256, b"\0"), 0x0AB16F30)


def rp2_firmware(family, storage, board=b"pico_w", pages=40, machine=b""):
    """A UF2 whose program declares its board and its `storage` (offset, size)."""
    memory = bytearray(bytes(range(256)) * pages)
    entries, text, table = 0x400, 0x500, 0x300
    memory[text : text + 32] = board.ljust(32, b"\0")
    memory[0x600 : 0x601 + len(machine)] = machine + b"\0"
    struct.pack_into("<HHII", memory, entries, 6, 0x5052, 0xB63CFFBB, XIP + text)
    device = (7, 0x504D, 0, XIP + storage[0], storage[1], 0, 3)
    struct.pack_into("<HHIIIIH", memory, entries + 64, *device)
    struct.pack_into("<II", memory, table, XIP + entries, XIP + entries + 64)
    struct.pack_into("<5I", memory, 0x1E4, 0x7188EBF2, XIP + table, XIP + table + 8, 0, 0xE71AA390)
    blocks = []
    if family != RP2040:
        # Erratum E10: one block of the absolute family comes first.
        blocks.append(uf2_block(0x10FFFF00, b"\xef" * 256, 0, 2, ABSOLUTE))
    for i in range(pages):
        page = bytes(memory[i * 256 : i * 256 + 256])
        blocks.append(uf2_block(XIP + i * 256, page, i, pages, family))
    return b"".join(blocks)
