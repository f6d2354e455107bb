"""Counts the journal's flash work for a message on the flash model, and computes it.

Steady state: a warm-up is not counted.  The message is a PUBLISH with 64 bytes of
payload on a topic of 27 bytes, the region 16 blocks of 4096 bytes.
"""

from dataclasses import dataclass

from host_tests.journal.steps import opened
from host_tests.standin.nor import Flash

BLOCKS = 16
BLOCK_BYTES = 4096
PAGE_BYTES = 256
CELL_BYTES = 64
PACKET = b"\x32\x5f\x00\x1bsensors/node-17/temperature\x00\x01" + bytes(range(64))

_WARM_UP = 600
_COUNT = 2000
_GROUP_BYTES = 16  # head and CRC
_ENTRY_BYTES = 5  # state, size, packet id
_NOTE_BYTES = 5


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
    cells = -(-(_GROUP_BYTES + _ENTRY_BYTES + packet_bytes + _NOTE_BYTES) // CELL_BYTES)
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


def journal_work(qos: int, together: int = 1) -> Work:
    """So many messages in each poll; more than one are put first and committed together."""
    flash = Flash(BLOCKS, BLOCK_BYTES, PAGE_BYTES)
    journal = opened(flash, slots=20, held_slots=1, group_commit=together > 1)
    programs = erases = 0
    for first in range(0, _WARM_UP + _COUNT, together):
        if first == _WARM_UP:
            programs, erases = flash.programs, flash.erases
        ids = range(first + 1, first + together + 1)
        for packet_id in ids:
            assert journal.put(packet_id, qos, PACKET, True)
        journal.commit()
        if qos == 2:
            for packet_id in ids:
                journal.pubrec(packet_id)
            journal.commit()
        for packet_id in ids:
            journal.remove(packet_id)
        journal.tidy()
    difference = max(flash.wear) - min(flash.wear)
    return Work((flash.programs - programs) / _COUNT, (flash.erases - erases) / _COUNT, difference)
