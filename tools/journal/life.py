"""How much flash work a message is, and how many years a region lasts at it.

The figures for one message follow from the format; `python -m host_tests bench journal`
measures the same on the flash model.
"""

_GROUP_BYTES = 16  # head and CRC
_ENTRY_BYTES = 5
_NOTE_BYTES = 5
_SECONDS_PER_YEAR = 365.25 * 86400


def erases_per_message(
    packet_bytes: int,
    qos: int = 1,
    *,
    page_bytes: int = 256,
    cell_bytes: int = 64,
    block_bytes: int = 4096,
) -> float:
    """Erases for a message of `packet_bytes` sent alone: its group with the note that
    the one before is done, and at QoS 2 a second group with the note of PUBREC."""
    cells = _cells(_ENTRY_BYTES + packet_bytes + _NOTE_BYTES, cell_bytes)
    per_page = page_bytes // cell_bytes
    if qos == 2:
        cells += _cells(_NOTE_BYTES, cell_bytes)
    if cells <= per_page:
        pages = 1 / (per_page // cells)
    else:
        pages = -(-cells // per_page)
    # One page of each block is shared with its title.
    return pages * page_bytes / (block_bytes - page_bytes)


def life_years(
    region_bytes: int,
    erases_per_message: float,
    *,
    seconds_per_message: float = 10,
    cycles: int = 100_000,
    block_bytes: int = 4096,
) -> float:
    """Years until the blocks of a region have been erased `cycles` times; they wear alike."""
    messages = region_bytes // block_bytes * cycles / erases_per_message
    return messages * seconds_per_message / _SECONDS_PER_YEAR


def _cells(record_bytes: int, cell_bytes: int) -> int:
    return -(-(_GROUP_BYTES + record_bytes) // cell_bytes)
