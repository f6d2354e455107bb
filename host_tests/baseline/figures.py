"""The recorded figures, those of the library as it is, and what has grown.

A table is {row: number}; `recorded.json` holds {title of a table: table}.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.boards.places import LIBRARY
from tools.boards.size import groups, sizes
from tools.micropython import Interpreter

from .instructions import can_count, count, countable

RECORDED = Path(__file__).parent / "recorded.json"
ACCEPT = "python -m host_tests baseline --accept"
SIZES = "bytes of .mpy"
_MOST_GROWTH = 0.03

Table = dict[str, int]


@dataclass(frozen=True)
class Row:
    """One figure; None: not recorded, or no longer there."""

    title: str
    before: int | None
    now: int | None

    @property
    def is_accepted(self) -> bool:
        """Has it not grown by more than 3 %, and is it in both?"""
        if self.before is None or self.now is None:
            return False
        return self.now <= self.before * (1 + _MOST_GROWTH)

    def shown(self) -> str:
        """The row as a line of a table."""
        before, now = ("" if one is None else f"{one:,}" for one in (self.before, self.now))
        if self.before is None:
            verdict = "new"
        elif self.now is None:
            verdict = "gone"
        else:
            verdict = f"{self.now / self.before - 1:+7.1%}"
        mark = "" if self.is_accepted else "  <--"
        return f"  {self.title:<24}{before:>10}{now:>10}  {verdict:>7}{mark}"


def recorded() -> dict[str, Table]:
    """What was accepted last."""
    tables: dict[str, Table] = json.loads(RECORDED.read_text())
    return tables


def measured_tables(library: Path = LIBRARY) -> Iterator[tuple[str, Table]]:
    """(title, table) of all that can be measured here.  Raises BenchError, BoardError."""
    yield SIZES, measure_sizes(library)
    for interpreter in countable():
        yield title_of(interpreter), count(interpreter, library)


def title_of(interpreter: Interpreter) -> str:
    """The title of the table of its instructions."""
    return f"instructions, MicroPython {interpreter.release}"


def measure_sizes(library: Path) -> Table:
    """Bytes of each module, of the groups that are loaded together, and of all."""
    modules = sizes(library)
    group = groups(library)
    table = {f"all of {name}": 0 for name in sorted(set(group.values()))}
    for name, size in modules.items():
        table[f"all of {group[name]}"] += size
    return {**modules, **table, "all": sum(modules.values())}


def compare(before: Table, now: Table) -> list[Row]:
    """One row for each figure of either."""
    return [Row(title, before.get(title), now.get(title)) for title in {**now, **before}]


def shown(title: str, rows: list[Row]) -> str:
    """The table of one comparison, with what to do if it is not accepted."""
    lines = [f"{title:<26}{'recorded':>10}{'now':>10}", *(row.shown() for row in rows)]
    if not all(row.is_accepted for row in rows):
        lines += [
            f"More than {_MOST_GROWTH:.0%} larger, or not in both.  If that is wanted: {ACCEPT}"
        ]
    return "\n".join(lines)


def level_ratios(table: Table) -> str:
    """What each kind of work at level 5 takes of the same at level 4; empty without any."""
    ratios = [
        f"{work} {now / table[f'level 4: {work}']:.3f}"
        for title, now in table.items()
        for level, _, work in [title.partition(": ")]
        if level == "level 5"
    ]
    return f"  level 5 to level 4: {', '.join(ratios)}\n" if ratios else ""


def accept(tables: dict[str, Table]) -> None:
    """Record `tables`.  Counts recorded elsewhere stay where none can be taken here."""
    kept = {} if can_count() else recorded()
    RECORDED.write_text(json.dumps({**kept, **tables}, indent=1) + "\n")
