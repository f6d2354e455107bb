"""Counts the flash work of a message on the flash model, the journal's and littlefs', and
computes the journal's.

Steady state: a warm-up is not counted.  The message is a PUBLISH with 64 bytes of
payload on a topic of 27 bytes, the window 4, the region 16 blocks of 4096 bytes.
"""

import struct
from dataclasses import dataclass

from littlefs import LittleFS
from littlefs.context import UserContext

from host_tests import library  # noqa: F401 - makes umqtt31 importable
from host_tests.standin.nor import Flash
from umqtt31.journal import Journal

BLOCKS = 16
BLOCK_BYTES = 4096
PAGE_BYTES = 256
CELL_BYTES = 64
WINDOW = 4
SLOT_BYTES = 256
PACKET = b"\x32\x5f\x00\x1bsensors/node-17/temperature\x00\x01" + bytes(range(64))

_WARM_UP = 600
_COUNT = 2000
_FILE_BYTES = 16384
_ENTRY = struct.Struct(">BHH")  # state, size, packet id
_GROUP_BYTES = 16  # head and CRC
_NOTE_BYTES = 5
_PUBACK, _PUBREC = 0x40, 0x50


@dataclass(frozen=True)
class Work:
    """For one message: pages programmed and blocks erased; `wear_difference` is that
    of the most and the least erased block after the whole run."""

    programs: float
    erases: float
    wear_difference: int


def erases_per_message(packet_bytes: int, qos: int = 1) -> float:
    """Erases for a message of `packet_bytes` sent alone, as they follow from the format: its group
    with the note that the one before is done, and at QoS 2 a second group with the note of
    PUBREC."""
    cells = -(-(_GROUP_BYTES + _ENTRY.size + packet_bytes + _NOTE_BYTES) // CELL_BYTES)
    if qos == 2:
        cells += -(-(_GROUP_BYTES + _NOTE_BYTES) // CELL_BYTES)
    per_page = PAGE_BYTES // CELL_BYTES
    pages = 1 / (per_page // cells) if cells <= per_page else -(-cells // per_page)
    # One page of each block is shared with its title.
    return pages * PAGE_BYTES / (BLOCK_BYTES - PAGE_BYTES)


def life_years(region_bytes: int, erases: float) -> float:
    """Years until the blocks of a region, which wear alike, have been erased 100,000 times, at a
    message in 10 s."""
    return region_bytes // BLOCK_BYTES * 100_000 / erases * 10 / (365.25 * 86400)


def journal_work(qos: int, messages_per_poll: int = 1) -> Work:
    """With more than one message a poll, they are put first and committed together."""
    flash = Flash(BLOCKS, BLOCK_BYTES, PAGE_BYTES)
    journal = Journal(flash, program_bytes=PAGE_BYTES, group_commit=messages_per_poll > 1)
    journal.open(b"node-17", 3, SLOT_BYTES, 20, None, [0, 0, 0], 12 * 20)
    step = messages_per_poll
    return _counted(flash, lambda k: _send(journal, qos, k, step), step)


def littlefs_work() -> Work:
    """The packet is appended to a file and flushed; at 16 KB the file is begun anew."""
    flash = Flash(BLOCKS, BLOCK_BYTES, PAGE_BYTES)
    files = LittleFS(
        context=_Context(flash),
        block_size=BLOCK_BYTES,
        block_count=BLOCKS,
        read_size=32,
        prog_size=PAGE_BYTES,
        cache_size=PAGE_BYTES * 4,
        lookahead_size=32,
    )
    # The file is closed before the filesystem goes, which it does not keep alive.
    with files.open("queue", "wb", buffering=0) as file:

        def append(_: int) -> None:
            if file.tell() > _FILE_BYTES:
                file.seek(0)
                file.truncate(0)
            file.write(PACKET)
            file.flush()

        work = _counted(flash, append, 1)
    files.unmount()
    return work


def _counted(flash: Flash, do, step: int) -> Work:
    for k in range(0, _WARM_UP, step):
        do(k)
    programs, erases = flash.programs, flash.erases
    for k in range(_WARM_UP, _WARM_UP + _COUNT, step):
        do(k)
    difference = max(flash.wear) - min(flash.wear)
    return Work((flash.programs - programs) / _COUNT, (flash.erases - erases) / _COUNT, difference)


def _send(journal: Journal, qos: int, first: int, count: int) -> None:
    # Messages of one poll, sent on an open connection, and all their answers.
    ids = range(first + 1, first + count + 1)
    for packet_id in ids:
        entry = _ENTRY.pack(0x30 + (qos << 4), len(PACKET), packet_id) + PACKET
        if not journal.put(entry, 0, len(entry), True, False):
            raise AssertionError("the journal is full")
    journal.commit()
    if qos == 2:
        for packet_id in ids:
            journal.note(_PUBREC, packet_id)
        journal.commit()
    for packet_id in ids:
        journal.note(_PUBACK, packet_id)
    journal.tidy()


class _Context(UserContext):
    # littlefs on the flash model.
    def __init__(self, flash: Flash) -> None:
        super().__init__(buffer=flash.data)
        self._flash = flash

    def prog(self, cfg, block: int, off: int, data: bytes) -> int:
        self._flash.writeblocks(block, data, off)
        return 0

    def erase(self, cfg, block: int) -> int:
        self._flash.ioctl(6, block)
        return 0
