"""What was measured, as tables for the terminal and as the page docs/reasons/benchmarks.md."""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from rich import box
from rich.table import Table

from tools.micropython import choose
from tools.project import ROOT

from .catalogue import BARE, Client
from .measures import Rows
from .situations import Outcome

PAGE = ROOT / "docs" / "reasons" / "benchmarks.md"
README = ROOT / "README.md"
_OURS = "umqtt31"
# Lines of the README's table: how each begins, its figures, what stands between two.
_README_LINES = (
    ("bytecode, bytes", "Bytecode", ("bytecode",), ""),
    ("smallest heap, bytes, QoS 1 both ways, from .mpy", "Smallest heap", ("smallest heap",), ""),
    (
        "heap for a publish and a received message at QoS 1, bytes",
        "Heap",
        ("publish QoS 1", "receive QoS 1"),
        ", ",
    ),
    ("instructions, publish at QoS 1", "Instructions", ("publish QoS 1",), ""),
    (
        "messages/s over 20 ms, window 1 / 10 / 100",
        "Rate",
        ("window 1", "window 10", "window 100"),
        " / ",
    ),
)
_README_OUTCOMES = "faults after which it hangs, is deaf or loses messages"
_INTRODUCTION = """\
# Beside other clients

Written by `make bench PEERS=folder`: every client runs on the same real MicroPython, against the
same far end, in one run. Each does what its own documentation says is best, through an adapter of
a few lines (`host_tests/bench/peers/device/adapters/`). Counts and bytes come out the same again,
but where several answers make one message: those that come together cost less, so that QoS 2
and what `umqtt31.aio` allocates at QoS 1 vary, the latter twofold. Rates are medians of several
rounds, each with all clients in it, so read them as ratios.
"""
_HOW = """\
## How to run it

Put the clients into one folder, as `mip` or `git` brings them, and name it:

```sh
make bench PEERS=folder
```

| client | in the folder |
|---|---|
{layout}

One that is not there is a line that says so. MicroPython fetches umqtt.simple, and umqtt.robust
likewise, by `mip.install("umqtt.simple", target="folder", mpy=False)`.

The others are copied from their repositories. None is kept in this one. A line
`umqtt.simple 1.8.0` in `folder/versions.txt` names the version of one that does not itself.

## What the tables leave out

- **The socket is not counted**, nor the kernel: instructions are those of MicroPython and what it
  calls. A client that makes garbage sends so many messages that its collections count.
- **Waiting:** umqtt31's program sleeps in `select.poll()` until something comes. mqtt_as looks
  every 100 ms whether an acknowledgement came and every 5 ms for a message: its instructions at
  QoS 1 are mostly these looks, its rate is ten a second for each task that publishes.
- **MiniMQTT** gets sockets and ticks as CircuitPython has them from its adapter. **mqtt_as** gets
  Wi-Fi that is always up. Both run elsewhere than here.
- **What only some do**, such as sending again after a reset, cannot stand in a table of figures:
  [moving over](../guides/moving.md) compares what they promise.
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


def make_table(measured: Measured, clients: Sequence[Client]) -> Table:
    """A client in each line, for the terminal."""
    table = Table(title=f"{measured.title}, {measured.unit}", title_justify="left", box=box.SIMPLE)
    table.add_column("", no_wrap=True)
    for row in measured.rows:
        table.add_column(row, justify="right")
    for cells in _lines(measured, clients):
        table.add_row(*cells)
    return table


def make_outcomes(outcomes: dict[str, dict[str, Outcome]], clients: Sequence[Client]) -> Table:
    """A situation in each line."""
    table = Table(title="What a program sees", title_justify="left", box=box.SIMPLE)
    table.add_column("")
    for client in clients:
        table.add_column(client.title)
    for title, found in outcomes.items():
        cells = [_marked(found[one.title], "[red]{}[/]") for one in clients]
        table.add_row(title, *cells)
    return table


def _marked(outcome: Outcome, bad: str) -> str:
    return outcome.text if outcome.is_good else bad.format(outcome.text)


def _lines(measured: Measured, clients: Sequence[Client]) -> list[list[str]]:
    titles = [client.title for client in clients]
    if any(BARE.title in found for found in measured.rows.values()):
        titles.append(BARE.title)
    return [
        [title, *(_cell(found, title, measured.beside) for found in measured.rows.values())]
        for title in titles
    ]


def _cell(found: dict[str, float], title: str, beside: str) -> str:
    # A figure, and how many times that of `beside` it is.
    if title not in found:
        return "–"
    text = f"{found[title]:,.0f}"
    if title == beside or not found[beside]:
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
            there = {title: found[title] for title in peers if title in found}
            if not there:
                continue
            choose_best = max if table.is_more_better else min
            best = choose_best(there, key=lambda title: there[title])
            ours, theirs = found[_OURS], there[best]
            margin = 1 + table.scatter
            if (theirs > ours * margin) if table.is_more_better else (theirs < ours / margin):
                name = row if row == table.title.lower() else f"{table.title.lower()}, {row}"
                lines.append(
                    f"- {name}: {best} {theirs:,.0f}, umqtt31 {ours:,.0f} {table.unit}"
                    f" ({max(ours, theirs) / max(1, min(ours, theirs)):.2f} times)"
                )
    return lines


def write_page(
    tables: Sequence[Measured],
    outcomes: dict[str, dict[str, Outcome]],
    clients: Sequence[Client],
    missing: dict[str, str],
    about: dict[str, str],
    layout: dict[str, str],
) -> None:
    """Write the page; `about` names machine, versions, date and load."""
    better = _better_peers(tables, clients)
    parts = [
        _INTRODUCTION,
        "## Where a peer is better\n",
        "\n".join(better or ["In none of the figures below."]) + "\n",
        "What umqtt31 does with the difference stands in [performance](performance.md).\n",
        *(_section(table, clients) for table in tables),
        _outcome_section(outcomes, clients),
        "## The run\n",
        _markdown(["", ""], [[key, value] for key, value in about.items()], "---"),
        *(f"{title} was not there: {names}.\n" for title, names in missing.items()),
        _HOW.format(layout="\n".join(f"| {title} | {names} |" for title, names in layout.items())),
    ]
    PAGE.write_text("\n".join(parts))


def write_readme(tables: Sequence[Measured], outcomes: dict[str, dict[str, Outcome]]) -> None:
    """Put the figures into the README's table, for the clients that it has; the best is bold."""
    text = README.read_text()
    (header,) = re.findall(r"^\| (\| umqtt31 \|.*)$", text, re.MULTILINE)
    clients = [cell.strip() for cell in header.strip("|").split("|")]
    named = {table.title: table for table in tables}
    lines = {}
    for begin, title, rows, between in _README_LINES:
        table = named[title]
        columns = [
            _bold([table.rows[row].get(client) for client in clients], table.is_more_better)
            for row in rows
        ]
        lines[begin] = [between.join(cells) for cells in zip(*columns)]
    bad = [sum(not found[client].is_good for found in outcomes.values()) for client in clients]
    lines[_README_OUTCOMES] = _bold(bad, False)
    lines[_README_OUTCOMES][0] += f" of {len(outcomes)}"
    for begin, cells in lines.items():
        row = f"| {begin} | " + " | ".join(cells) + " |"
        text = re.sub(rf"^\| {re.escape(begin)} \|.*$", row, text, flags=re.MULTILINE)
    README.write_text(text)


def _bold(figures: Sequence[float | None], is_more_better: bool) -> list[str]:
    there = [round(figure) for figure in figures if figure is not None]
    best = max(there) if is_more_better else min(there)
    cells = ["–" if figure is None else f"{figure:,.0f}" for figure in figures]
    return [f"**{cell}**" if cell == f"{best:,}" else cell for cell in cells]


def _section(table: Measured, clients: Sequence[Client]) -> str:
    header = ["", *table.rows]
    body = _markdown(header, _lines(table, clients))
    return f"## {table.title}\n\n{table.about}\n\n{body}"


def _outcome_section(outcomes: dict[str, dict[str, Outcome]], clients: Sequence[Client]) -> str:
    lines = [
        [title, *(_marked(found[one.title], "**{}**") for one in clients)]
        for title, found in outcomes.items()
    ]
    body = _markdown(["", *(client.title for client in clients)], lines, "---")
    return (
        "## When something goes wrong\n\n"
        "What the program sees, with time-outs of 2 s and keep alive of 2 s where a client has"
        " them. Bold is what a program cannot live with: it hangs, hears nothing, or loses what"
        " came. *Told*: the wait ended, and the program knows that no answer came. With asyncio"
        " other tasks go on while one hangs.\n\n" + body
    )


def _markdown(header: Sequence[str], lines: Sequence[Sequence[str]], column: str = "---:") -> str:
    rule = ["---", *(column for _ in header[1:])]
    rows = [header, rule, *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows) + "\n"


def machine() -> dict[str, str]:
    """The computer, its versions and the date."""
    small, large = choose(bits=32), choose(bits=64)
    return {
        "date": date.today().isoformat(),
        "computer": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "MicroPython": f"{small.release} with 32 bits, {large.release} with 64 bits",
        "valgrind": _first_line(["valgrind", "--version"]).removeprefix("valgrind-"),
    }


def _processor() -> str:
    about = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.+)", about.read_text()) if about.exists() else None
    return found[1] if found else platform.machine()


def _first_line(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0]
    except OSError:
        return "not installed"


def load() -> str:
    """Programs that wanted to run in the last minute."""
    return f"{os.getloadavg()[0]:.1f}"
