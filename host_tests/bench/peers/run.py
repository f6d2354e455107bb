"""All measures of all clients, one after the other, onto the terminal and the page."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from . import measures, page
from .catalogue import BARE, CLIENTS, present
from .page import Measured
from .situations import measure_outcomes

# By how much rates differ from run to run.
_SCATTER = 0.05
_IN_ROUNDS = (measures.measure_awake, measures.measure_rates, measures.measure_receiving)
# What takes the figures, and the table without them.
_TABLES: tuple[tuple[Callable, Measured], ...] = (
    (
        measures.measure_heap,
        Measured(
            "Heap",
            "bytes",
            "Bytes that one operation allocates, with 32 bits and a payload of 64 bytes."
            " QoS 1 and 2 are counted to the last acknowledgement.",
        ),
    ),
    (
        measures.measure_bytecode,
        Measured(
            "Bytecode",
            "bytes",
            "Bytes of `.mpy` that are loaded to publish and receive at QoS 1. umqtt31 is as"
            " `make build` makes it.",
        ),
    ),
    (
        measures.measure_smallest,
        Measured(
            "Smallest heap",
            "bytes",
            "200 messages at QoS 1 go there and back in it, with a window of 4 where there is one."
            " 32 bits, from `.mpy`, to within 256 bytes.",
        ),
    ),
    (
        measures.measure_instructions,
        Measured(
            "Instructions",
            "instructions",
            "Of the processor for one message and its answers, with 64 bits. The topic has 13"
            " bytes, the payload 64. Garbage collection is included.",
        ),
    ),
    (
        measures.measure_awake,
        Measured(
            "Awake",
            "ms",
            "From the import to the first acknowledgement at QoS 1, with a round trip of 20 ms.",
            scatter=_SCATTER,
        ),
    ),
    (
        measures.measure_rates,
        Measured(
            "Rate",
            "messages/s",
            "Acknowledged messages a second at QoS 1 with a round trip of 20 ms. *Bare socket*"
            " sends prebuilt packets: nothing is faster.",
            is_more_better=True,
            scatter=_SCATTER,
        ),
    ),
    (
        measures.measure_receiving,
        Measured(
            "Receive ratio",
            "messages/s",
            "Messages a second that a program is handed of up to 20,000 at once. Ratios are to a"
            " bare socket.",
            is_more_better=True,
            scatter=_SCATTER,
            beside=BARE.title,
        ),
    ),
)


def run(peers: Path, rounds: int, console: Console) -> Path:
    """Measure everything -> the page.  Raises BenchError, MicroPythonError."""
    clients = present(peers)
    absent = {one.title: found for one in CLIENTS if (found := one.missing(peers))}
    for title, names in absent.items():
        console.print(f"{title}: not there, {names} is missing")
    about = page.machine()
    about |= {one.title: one.release(peers) for one in clients if one.modules or one is CLIENTS[0]}
    about["load at the start"] = page.load()
    tables = []
    for measure, table in _TABLES:
        work = partial(measure, rounds=rounds) if measure in _IN_ROUNDS else measure
        with console.status(f"measuring {table.title.lower()}"):
            tables.append(replace(table, rows=work(clients, peers)))
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
