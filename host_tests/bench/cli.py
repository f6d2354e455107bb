"""`bench`: speed and size of umqtt31, and of other clients beside it."""

from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from tools.micropython import MicroPythonError

from . import BenchError, measures, page
from .catalogue import BARE, CLIENTS, OURS, present
from .page import Measured
from .situations import measure_outcomes
from .tls import connection

# By how much rates differ from run to run.
_SCATTER = 0.05
_ROUNDS = 3  # of these, the median
# What takes the figures of a client, and the table without them.
_TABLES: dict[measures.Work, Measured] = {
    measures.heap: Measured(
        "Heap",
        "bytes",
        "Bytes that one operation allocates, with 32 bits and a payload of 64 bytes."
        " QoS 1 and 2 are counted to the last acknowledgement.",
    ),
    measures.size: Measured(
        "Size",
        "bytes",
        "Bytes of `.mpy` that are loaded to publish and receive at QoS 1, umqtt31 as `make build`"
        " makes it. Then the smallest heap in which 200 messages go there and back, with a window"
        " of 4 where there is one: 32 bits, to within 256 bytes.",
    ),
    measures.instructions: Measured(
        "Instructions",
        "instructions",
        "Of the processor for one message and its answers, with 64 bits. The topic has 13"
        " bytes, the payload 64. Garbage collection is included.",
    ),
    measures.awake: Measured(
        "Awake",
        "ms",
        "From the import to the first acknowledgement at QoS 1, with a round trip of 20 ms.",
        scatter=_SCATTER,
    ),
    measures.rates: Measured(
        "Rate",
        "messages/s",
        "Acknowledged messages a second at QoS 1 with a round trip of 20 ms. *Bare socket*"
        " sends prebuilt packets: nothing is faster.",
        is_more_better=True,
        scatter=_SCATTER,
    ),
    measures.receiving: Measured(
        "Receive ratio",
        "messages/s",
        "Messages a second that a program is handed of up to 20,000 at once. Ratios are to a"
        " bare socket.",
        is_more_better=True,
        scatter=_SCATTER,
        beside=BARE.title,
    ),
}
_OF_CLIENTS = {work.__name__: (work, table) for work, table in _TABLES.items()}
# Of umqtt31 alone.
_TLS = Measured("TLS", "bytes", "For a connection with ECDSA P-256 and TLS 1.2.")


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*_OF_CLIENTS, "situations", "tls"]))
@click.option(
    "--peers",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder with other clients; all measures of all write docs/reasons/benchmarks.md.",
)
def cli(names: tuple[str, ...], peers: Path | None) -> None:
    """Measure all, or what NAMES say, and print it.

    Nothing fails for being slow: exit status 1 only says that something could not
    be measured.
    """
    try:
        _measure(names, peers, Console())
    except (BenchError, MicroPythonError) as error:
        raise click.ClickException(str(error)) from error


def _measure(names: tuple[str, ...], peers: Path | None, console: Console) -> None:
    clients = present(peers) if peers else [*OURS]
    folder = peers or Path()
    absent = {one.title: found for one in CLIENTS if (found := one.missing(folder))}
    is_page = bool(peers) and not names
    about = page.about(clients, folder) if is_page else {}
    for title, missing in absent.items() if peers else ():
        click.echo(f"{title}: not there, {missing} is missing")
    tables = []
    for name, (work, table) in _OF_CLIENTS.items():
        if names and name not in names:
            continue
        those, times = clients, _ROUNDS if table.scatter == _SCATTER else 1
        if work in (measures.rates, measures.receiving):
            those = [*clients, BARE]
        with console.status(f"measuring {name}"):
            tables.append(replace(table, rows=measures.measure(work, those, folder, times)))
        click.echo(page.section(tables[-1], clients))
    outcomes = {}
    if not names or "situations" in names:
        with console.status("trying what goes wrong"):
            outcomes = measure_outcomes(clients, folder)
        click.echo(page.outcome_section(outcomes, clients))
    if "tls" in names or not (names or is_page):
        with console.status("measuring tls"):
            click.echo(page.section(replace(_TLS, rows=connection()), ()))
    if is_page:
        about["load at the end"] = page.load()
        page.write_page(tables, outcomes, clients, absent, about)
        click.echo(f"written: {page.PAGE}")
