"""Flash work of the journal beside appending the same message to a file on littlefs.

Counted on the flash model, not timed; 64 KB of flash for 100,000 erases of a block,
256-byte pages, 4 KB blocks.
"""

from collections.abc import Iterator

from host_tests.journal.work import BLOCK_BYTES, BLOCKS, journal_work, littlefs_work
from tools.journal.life import life_years

from .figures import Figure
from .subjects import Bench

TITLE = "Journal: pages programmed, blocks erased for 1,000 messages of 64 bytes, window 4"
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
        name = f"QoS {qos}, {together} in a poll"
        yield Figure(f"{name}: pages", work.programs * 1000, programs * 1000, file.programs * 1000)
        yield Figure(f"{name}: erases", work.erases * 1000, erases * 1000, file.erases * 1000)
    work = journal_work(1)
    region = BLOCKS * BLOCK_BYTES
    fewer = file.erases / work.erases
    yield Figure("times fewer erases", fewer, _FEWER, is_more_better=True)
    most = _MOST_WEAR_DIFFERENCE
    yield Figure("wear, most - least", work.wear_difference, most, file.wear_difference)
    years = life_years(region, work.erases)
    others = life_years(region, file.erases)
    yield Figure("years, 1 in 10 s", years, _LEAST_YEARS, others, is_more_better=True)
