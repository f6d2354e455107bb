"""`python -m host_tests proof coverage` and `mutants`; thin, the work is done beside it."""

import click

from . import branches, mutants


@click.group()
def cli() -> None:
    """How far the tests of the library go."""


@cli.command()
def coverage() -> None:
    """Branch coverage of lib/umqtt31; exit status 1 if it is below the limit."""
    if not branches.measure():
        raise SystemExit(1)


@cli.command("mutants")
@click.option("--all", "is_fresh", is_flag=True, help="Forget what earlier runs found.")
@click.option("--survivors", is_flag=True, help="Print each mutant that no test notices.")
def run_mutants(is_fresh: bool, survivors: bool) -> None:
    """Mutation score of session and journal; exit status 1 if it is below the limit."""
    if not mutants.measure(is_fresh, survivors):
        raise SystemExit(1)
