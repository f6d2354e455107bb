"""`bench`: speed and size beside their budgets and beside umqtt.simple."""

from pathlib import Path

import click
from rich.console import Console

from tools.micropython import MicroPythonError

from . import heap, instructions, journal, peer, smallest, tasks, throughput, tls
from .figures import BenchError
from .subjects import Bench
from .table import make_table

# Each has a TITLE and `measure(bench)`, which yields figures, and may name the PEER.
_MEASURES = {
    "heap": heap,
    "smallest": smallest,
    "instructions": instructions,
    "throughput": throughput,
    "asyncio": tasks,
    "journal": journal,
    "tls": tls,
}

_WIDTH = 160  # of tables with a column for each client, without a terminal


@click.command()
@click.argument("measures", nargs=-1, type=click.Choice(list(_MEASURES)))
@click.option(
    "--peer",
    "peer_folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder with umqtt/simple.py, instead of fetching it.",
)
@click.option(
    "--peers",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder with other clients: compare all, and write docs/reasons/benchmarks.md.",
)
@click.option("--rounds", default=3, show_default=True, help="Rates with --peers: the median of.")
def cli(
    measures: tuple[str, ...], peer_folder: Path | None, peers: Path | None, rounds: int
) -> None:
    """Measure all, or the MEASURES named, and print them beside their budgets.

    Nothing fails for being slow: exit status 1 only says that something could not
    be measured.
    """
    console = Console()
    try:
        if peers:
            from .peers.run import run

            if not console.is_terminal:
                console = Console(width=_WIDTH)
            console.print(f"written: {run(peers, rounds, console)}")
            return
        bench = Bench(peer.given(peer_folder) if peer_folder else peer.fetched(Bench().large))
        console.print(_introduction(bench))
        for name in measures or _MEASURES:
            with console.status(f"measuring {name}"):
                figures = list(_MEASURES[name].measure(bench))
            other = getattr(_MEASURES[name], "PEER", "simple")
            console.print(make_table(_MEASURES[name].TITLE, figures, other))
    except (BenchError, MicroPythonError) as error:
        raise click.ClickException(str(error)) from error


def _introduction(bench: Bench) -> str:
    peer_title = bench.peer.title if bench.peer else "not reachable: give --peer"
    return (
        f"MicroPython {bench.small.release} with 32 and {bench.large.release} with 64 bits.\n"
        f"umqtt.simple: {peer_title}.  In brackets: figures published for 1.8."
    )
