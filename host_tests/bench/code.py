"""Bytes of .mpy: what the client takes in a board's flash.  `tools boards size` has more."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.boards.size import BUDGETS, BUILT_BUDGETS, group_totals, measure_built, measure_modules

from .figures import Figure
from .subjects import Bench

TITLE = "Bytes of .mpy"

_PUBLISHED = 2515


def measure(bench: Bench) -> Iterator[Figure]:
    """The modules that every user of the client loads, together."""
    totals = group_totals(measure_modules())
    yield Figure(
        "client, all layers", totals["core"][0], BUDGETS["core"], _peer(bench), _PUBLISHED
    )
    yield Figure("  as boards get it", measure_built()["core"], BUILT_BUDGETS["core"])


def _peer(bench: Bench) -> float | None:
    if not bench.simple:
        return None
    with tempfile.TemporaryDirectory() as folder:
        files = bench.simple.compile("publish", Path(folder))
        return sum(path.stat().st_size for path in files)
