"""The partition table of an ESP32 image: read, changed, written.

Layout: ESP-IDF, "Partition Tables": 32-byte entries at 0x8000, then an MD5 of
them, the rest 0xFF.
"""

import hashlib
import struct
from dataclasses import dataclass

from .errors import BoardError

TABLE_OFFSET = 0x8000
TABLE_BYTES = 0xC00
_ENTRY = struct.Struct("<2sBBII16sI")
_MAGIC = b"\xaa\x50"
_MD5_MAGIC = b"\xeb\xeb" + b"\xff" * 14
APP, DATA = 0x00, 0x01
_FAT = 0x81  # what upstream gives "vfs", though it holds littlefs
_JOURNAL = 0x40  # the first data subtype that ESP-IDF leaves to applications


@dataclass(frozen=True)
class Partition:
    """One entry: `kind` APP or DATA, offset and size in bytes."""

    label: str
    kind: int
    subtype: int
    offset: int
    size: int
    flags: int = 0

    @property
    def end(self):
        return self.offset + self.size


def read_table(data, where):
    """Parse a partition table; BoardError beginning with `where` when it is damaged."""
    found = []
    for at in range(0, min(len(data), TABLE_BYTES), _ENTRY.size):
        entry = data[at : at + _ENTRY.size]
        if entry[:16] == _MD5_MAGIC:
            if entry[16:] != hashlib.md5(data[:at]).digest():
                raise BoardError(
                    f"{where}: the partition table's checksum is wrong; download it again"
                )
            break
        if entry[:2] != _MAGIC:
            break
        _, kind, subtype, offset, size, label, flags = _ENTRY.unpack(entry)
        name = label.rstrip(b"\0").decode(errors="replace")
        found.append(Partition(name, kind, subtype, offset, size, flags))
    if not any(partition.kind == APP for partition in found):
        raise BoardError(f"{where}: no partition table at {TABLE_OFFSET:#x}; use upstream's .bin")
    return found


def write_table(partitions):
    """The bytes of a table, TABLE_BYTES long, with its checksum."""
    entries = b"".join(
        _ENTRY.pack(_MAGIC, p.kind, p.subtype, p.offset, p.size, p.label.encode(), p.flags)
        for p in partitions
    )
    return (entries + _MD5_MAGIC + hashlib.md5(entries).digest()).ljust(TABLE_BYTES, b"\xff")


def with_journal(partitions, flash_bytes, journal, where):
    """`partitions` with "vfs" and behind it "journal" (a profile's Journal).

    Where upstream's table has no "vfs", its boot code takes what is free; the
    journal needs it written down.  BoardError when there is no room.
    """
    others = [p for p in partitions if p.label not in ("vfs", "journal")]
    start = next((p.offset for p in partitions if p.label == "vfs"), max(p.end for p in others))
    taken = max(p.end for p in others)
    if taken > start or start >= journal.offset or journal.offset + journal.size > flash_bytes:
        raise BoardError(
            f"{where}: partitions reach to {taken:#x}, the journal needs "
            f"{journal.offset:#x} to {journal.offset + journal.size:#x}; use the standard firmware"
        )
    return [
        *others,
        Partition("vfs", DATA, _FAT, start, journal.offset - start),
        Partition("journal", DATA, _JOURNAL, journal.offset, journal.size),
    ]
