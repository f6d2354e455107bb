"""Flash work of the journal beside appending the same message to a file on littlefs.

Counted on the flash model, not timed; 64 KB of flash for 100,000 erases of a block,
256-byte pages, 4 KB blocks.
"""

from host_tests.journal.work import BLOCK_BYTES, BLOCKS, journal_work, life_years, littlefs_work

from .measures import Rows

_CASES = ((1, 1), (1, 4), (2, 1), (2, 4))  # QoS, messages in one poll


def flash_work() -> Rows:
    """For 1,000 messages in each case, then what follows from them."""
    file = littlefs_work()
    rows = {}
    for qos, together in _CASES:
        work = journal_work(qos, together)
        name = f"QoS {qos}, {together} in a poll"
        rows[f"{name}: pages"] = (work.programs * 1000, file.programs * 1000)
        rows[f"{name}: erases"] = (work.erases * 1000, file.erases * 1000)
    work = journal_work(1)
    region = BLOCKS * BLOCK_BYTES
    rows["wear, most - least"] = (work.wear_difference, file.wear_difference)
    rows["years, 1 in 10 s"] = (life_years(region, work.erases), life_years(region, file.erases))
    return {row: dict(zip(("umqtt31", "littlefs"), found)) for row, found in rows.items()}
