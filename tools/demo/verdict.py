"""Says in a table and a few sentences what was promised and what arrived."""

from dataclasses import astuple

from rich import box
from rich.console import Console
from rich.table import Table

from .accounts import Account
from .stage import Outcome

_PROMISES = {0: "may be lost", 1: "all arrive", 2: "exactly once"}


def is_kept(account: Account) -> bool:
    """Did the stream keep the promise of its QoS, and carry anything at all?"""
    if not account.received:
        return False
    if account.qos == 0:
        return True
    is_complete = not account.lost
    return is_complete and (account.qos == 1 or not account.duplicated + account.disordered)


def holds(outcome: Outcome) -> bool:
    """Did everything hold in this act?"""
    return all(map(is_kept, outcome.accounts)) and all(held for _, held in outcome.checks)


def show(console: Console, outcome: Outcome) -> None:
    """Print one act's table and sentences."""
    table = Table(
        title=outcome.title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1),
        show_edge=False, pad_edge=False,
    )  # fmt: skip
    table.add_column("QoS", justify="right")
    table.add_column("promise", no_wrap=True)
    for name in ("accepted", "received", "lost", "duplicated", "out of order"):
        table.add_column(name, justify="right")
    table.add_column("kept")
    for account in outcome.accounts:
        _, qos, *counts = astuple(account)
        table.add_row(str(qos), _PROMISES[qos], *map(str, counts), _mark(is_kept(account)))
    console.print()
    console.print(table)
    for text, held in outcome.checks:
        console.print(f"  {_mark(held)}  {text}", highlight=False)


def _mark(held: bool) -> str:
    return "[green]yes[/green]" if held else "[bold red]NO[/bold red]"
