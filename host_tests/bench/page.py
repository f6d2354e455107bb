"""What was measured, as tables of Markdown, and the page docs/reasons/benchmarks.md."""

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from tools.micropython import choose
from tools.project import ROOT

from .catalogue import CLIENTS, Client
from .measures import Rows
from .situations import Outcome

PAGE = ROOT / "docs" / "reasons" / "benchmarks.md"
_OURS = "umqtt31"
_INTRODUCTION = """\
---
hide: [navigation, toc]
---

# Figures

`make bench PEERS=folder` writes this page. Every client runs on the same MicroPython, against the
same far end, as its own documentation says is best. Counts and bytes are the same in each run.
Rates depend on the computer, so read them as ratios. Heap is measured on MicroPython's unix port
with 32 bits, whose objects are as large as a board's.
"""
_HOW = """\
## How to run it

Put the clients into one folder, as `mip` or `git` brings them, and name it:

```sh
make bench PEERS=folder
```

{layout}

`folder/versions.txt` names versions: `umqtt.simple 1.8.0`.

- Instructions are MicroPython's, counted by valgrind from `.mpy` files, without the kernel.
- mqtt_as looks every 100 ms whether an acknowledgement came. Its figures at QoS 1 are mostly that.
- MiniMQTT gets sockets as CircuitPython has them. mqtt_as gets Wi-Fi that is always up.
"""


@dataclass(frozen=True)
class Measured:
    """One table: `rows` by title; `unit` of its figures; which direction is better; by how
    much figures `scatter` from run to run; `beside` whose figures the ratios are."""

    title: str
    unit: str
    about: str
    rows: Rows = field(default_factory=dict)
    is_more_better: bool = False
    scatter: float = 0.005
    beside: str = _OURS


def _lines(measured: Measured, clients: Sequence[Client]) -> list[list[str]]:
    titles = dict.fromkeys(client.title for client in clients)
    for found in measured.rows.values():  # and what is no client
        titles |= dict.fromkeys(found)
    return [
        [title, *(_cell(found, title, measured.beside) for found in measured.rows.values())]
        for title in titles
    ]


def _cell(found: dict[str, float], title: str, beside: str) -> str:
    # A figure, and how many times that of `beside` it is.
    if title not in found:
        return "–"
    text = f"{found[title]:,.0f}"
    if title == beside or not found.get(beside):
        return text
    ratio = found[title] / found[beside]
    digits = ".1g" if ratio < 0.095 else ".2f" if ratio < 9.95 else ".0f"
    return f"{text} ({ratio:{digits}}×)"


def _better_peers(tables: Sequence[Measured], clients: Sequence[Client]) -> list[str]:
    # A line for each figure at which a peer is better than umqtt31.
    peers = [client.title for client in clients if not client.is_ours]
    lines = []
    for table in tables:
        for row, found in table.rows.items():
            there = {found[title]: title for title in peers if title in found}
            if not there:
                continue
            ours, theirs = found[_OURS], max(there) if table.is_more_better else min(there)
            low, high = sorted((ours, theirs))
            is_better = (theirs > ours) is table.is_more_better
            if is_better and high > low * (1 + table.scatter):
                name = row if row == table.title.lower() else f"{table.title.lower()}, {row}"
                lines.append(
                    f"- {name}: {there[theirs]} {theirs:,.0f}, umqtt31 {ours:,.0f} {table.unit}"
                    f" ({high / max(1, low):.2f} times)"
                )
    return lines


def write_page(
    tables: Sequence[Measured],
    outcomes: dict[str, dict[str, Outcome]],
    clients: Sequence[Client],
    missing: dict[str, str],
    about: dict[str, str],
) -> None:
    """Write the page; `about` names machine, versions, date and load."""
    layout = [
        f"- {one.title}: " + ", ".join(f"`{x}`" for x in one.modules)
        for one in CLIENTS
        if one.modules
    ]
    better = _better_peers(tables, clients)
    parts = [
        _INTRODUCTION,
        "## Where a peer is better\n",
        "\n".join(better or ["In none of the figures below."]) + "\n",
        *(section(table, clients) for table in tables),
        outcome_section(outcomes, clients),
        "## The run\n",
        "".join(f"- {key}: {value}\n" for key, value in about.items()),
        *(f"{title} was not there: {names}.\n" for title, names in missing.items()),
        _HOW.format(layout="\n".join(layout)),
    ]
    PAGE.write_text("\n".join(parts))


def section(table: Measured, clients: Sequence[Client]) -> str:
    """A client in each line; a figure in each where no client has a column."""
    cells = [["", *table.rows], *_lines(table, clients)]
    body = _markdown(cells if clients else [*zip(*cells)])
    return f"## {table.title}\n\n{table.about}\n\n{body}"


def outcome_section(outcomes: dict[str, dict[str, Outcome]], clients: Sequence[Client]) -> str:
    """A situation in each line."""
    cells = [["", _OURS, "a program cannot live with"]]
    for title, found in outcomes.items():
        bad = [
            f"{one.title} ({found[one.title].text})"
            for one in clients
            if not found[one.title].is_good
        ]
        cells.append([title, found[_OURS].text, ", ".join(bad) or "none"])
    return (
        "## When something goes wrong\n\n"
        "Time-outs and keep alive are 2 s where a client has them. *Told*: the program knows that"
        " no answer came.\n\n" + _markdown(cells, "---")
    )


def _markdown(cells: Sequence[Sequence[str]], column: str = "---:") -> str:
    rule = ["---", *(column for _ in cells[0][1:])]
    rows = [cells[0], rule, *cells[1:]]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows) + "\n"


def about(clients: Sequence[Client], peers: Path) -> dict[str, str]:
    """The computer, its load, all versions and the date."""
    small, large = choose(bits=32), choose(bits=64)
    return {
        "date": date.today().isoformat(),
        "computer": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "MicroPython": f"{small.release} with 32 bits, {large.release} with 64 bits",
        **{one.title: one.release(peers) for one in clients if one.modules or one.title == _OURS},
        "load at the start": load(),
    }


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", about.read_text()) if about.exists() else None
    return found[1] if found else platform.machine()


def load() -> str:
    """Programs that wanted to run in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"
