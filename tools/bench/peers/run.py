"""All measures of all clients, one after the other, onto the terminal and the page."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console

from . import measures, page
from .catalogue import CLIENTS, present
from .page import Measured
from .situations import measure_outcomes

# Title, what takes the figures, unit, what it says, is more better?
_RATES_SCATTER = 0.05
_TABLES: tuple[tuple[str, Callable, str, str, bool], ...] = (
    (
        "Heap",
        measures.measure_heap,
        "bytes",
        "Bytes that one operation allocates, on 32 bits, without the collector, a payload of 64"
        " bytes. At QoS 1 and 2 to the last acknowledgement.",
        False,
    ),
    (
        "Bytecode",
        measures.measure_bytecode,
        "bytes",
        "Bytes of `.mpy` of all modules that are loaded to publish and to receive at QoS 1;"
        " umqtt31 as `make build` makes it for boards, here and in all that follows.",
        False,
    ),
    (
        "Smallest heap",
        measures.measure_smallest,
        "bytes",
        "In which 200 messages at QoS 1 go there and back, window 4 where there is one, all of it"
        " loaded from `.mpy`, 32 bits, to within 256 bytes.",
        False,
    ),
    (
        "Instructions",
        measures.measure_instructions,
        "instructions",
        "Of the processor for one message and its answers, 64 bits, a topic of 13 and a payload of"
        " 64 bytes, the garbage collector's part included.",
        False,
    ),
    (
        "Rate",
        measures.measure_rates,
        "messages/s",
        "Messages a second that are acknowledged at QoS 1 over a link with 20 ms round trip, with"
        " TCP_NODELAY and with Nagle's algorithm. A client that waits for each answer has window 1"
        " only. *Bare socket*: prebuilt packets, no client; nothing can be faster. On a busy"
        " computer all of them scatter by a tenth.",
        True,
    ),
)


def run(peers: Path, rounds: int, console: Console) -> Path:
    """Measure everything -> the page.  Raises BenchError, MicroPythonError."""
    clients = present(peers)
    absent = {one.title: found for one in CLIENTS if (found := one.missing(peers))}
    for title, names in absent.items():
        console.print(f"{title}: not there, {names} is missing")
    about = page.machine()
    about |= {one.title: one.release(peers) for one in clients}
    about["load at the start"] = page.load()
    tables = []
    for title, measure, unit, text, is_more_better in _TABLES:
        work = partial(measure, rounds=rounds) if measure is measures.measure_rates else measure
        with console.status(f"measuring {title.lower()}"):
            scatter = _RATES_SCATTER if measure is measures.measure_rates else 0.005
            rows = work(clients, peers)
            tables.append(Measured(title, rows, unit, text, is_more_better, scatter))
        console.print(page.make_table(tables[-1], clients))
    with console.status("trying what goes wrong"):
        outcomes = measure_outcomes(clients, peers)
    console.print(page.make_outcomes(outcomes, clients))
    about["load at the end"] = page.load()
    layout = {
        one.title: ", ".join(f"`{x}`" for x in one.modules) for one in CLIENTS if one.modules
    }
    page.write_page(tables, outcomes, clients, absent, about, layout)
    return page.PAGE
