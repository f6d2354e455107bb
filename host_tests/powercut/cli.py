"""Command line of the power-cut proof: all pairs of cuts, as long as it takes."""

import click
from rich.console import Console
from rich.progress import track

from .checker import Broken, Checker
from .scenarios import scenarios


@click.command()
def cli() -> None:
    """Cut the power at every flash operation of the journal, then once more."""
    console = Console()
    total = 0
    for scenario in track([*scenarios(8)], "power cuts", console=console):
        checker = Checker(torn=8, is_whole=True)
        try:
            checker.run(scenario)
        except Broken as error:
            raise click.ClickException(str(error)) from None
        total += checker.count.total()
        console.print(f"{checker.count.total():>12,}  {scenario.name}")
    console.print(f"{total:>12,}  cuts; recovered state always the one before or after")
