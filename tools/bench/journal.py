"""Flash work of the journal beside appending the same message to a file on littlefs.

Counted on the flash model, not timed; 64 KB of flash, 256-byte pages, 4 KB blocks.
"""

from collections.abc import Iterator

from tools.journal.life import life_years
from tools.journal.work import BLOCK_BYTES, BLOCKS, journal_work, littlefs_work

from .figures import Figure
from .subjects import Bench

TITLE = "Journal: flash work for 1,000 messages of 64 bytes, window 4"
PEER = "littlefs"

_LEAST_YEARS = 10
_MOST_WEAR_DIFFERENCE = 2
_FEWER = 10
# qos, messages in one poll, budgets for programs and erases of one message
_CASES = ((1, 1, 1.3, 0.09), (1, 4, 0.5, 0.04), (2, 1, 2.6, 0.18), (2, 4, 1.0, 0.08))


def measure(bench: Bench) -> Iterator[Figure]:
    """Programs and erases of each case, then what follows from them."""
    file = littlefs_work()
    for qos, together, programs, erases in _CASES:
        work = journal_work(qos, together)
        name = f"QoS {qos}, {'one' if together == 1 else together} at a time"
        yield Figure(
            f"{name}: pages programmed",
            work.programs * 1000,
            programs * 1000,
            file.programs * 1000,
        )
        yield Figure(
            f"{name}: blocks erased", work.erases * 1000, erases * 1000, file.erases * 1000
        )
    work = journal_work(1)
    region = BLOCKS * BLOCK_BYTES
    yield Figure(
        "times fewer erases than littlefs", file.erases / work.erases, _FEWER, is_more_better=True
    )
    yield Figure(
        "difference of wear of blocks",
        work.wear_difference,
        _MOST_WEAR_DIFFERENCE,
        file.wear_difference,
    )
    yield Figure(
        "years at a message in 10 s, 100,000 cycles",
        life_years(region, work.erases),
        _LEAST_YEARS,
        life_years(region, file.erases),
        is_more_better=True,
    )
