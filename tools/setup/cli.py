"""`python -m tools setup`: the steps of set-up, and what is there."""

import sys

import click
from rich.console import Console
from rich.table import Table

from tools import micropython

from . import environment, source, steps, system


@click.group(help="Install what this checkout needs (the same as `make setup`).")
def cli() -> None:
    pass


@cli.command("layer")
@click.argument("layer", type=click.Choice(list(steps.LAYERS)), default="all")
def install_layer(layer: str) -> None:
    """Install what a layer lacks: client, boards, demo, fleet, docs or all."""
    try:
        steps.run_all(layer)
    except steps.SetupError as error:
        raise click.ClickException(str(error)) from error


@cli.command()
def brokers() -> None:
    """Unpack the brokers that only tests marked "broker" need: RabbitMQ 3 and 4, ejabberd."""
    try:
        steps.run_brokers()
    except steps.SetupError as error:
        raise click.ClickException(str(error)) from error


@cli.command()
def show() -> None:
    """What is installed; exit status 1 if anything is missing."""
    table = Table("needed", "found")
    is_complete = True
    for need in system.NEEDS:
        is_complete &= need.is_met()
        table.add_row(need.title, "yes" if need.is_met() else "no: run `make setup`")
    table.add_row("Python packages", f"{len(environment.wanted())} in .venv")
    found = micropython.interpreters()
    for interpreter in found:
        table.add_row(f"MicroPython {interpreter.id}", interpreter.release)
    if not found:
        table.add_row("MicroPython", "no: run `make setup`")
    table.add_row("MicroPython's source", "yes" if source.FOLDER.exists() else "no")
    Console().print(table)
    sys.exit(0 if is_complete and found else 1)
