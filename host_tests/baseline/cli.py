"""`baseline`: sizes and instruction counts beside those recorded, or accept them."""

import sys

import click

from host_tests.bench.figures import BenchError
from tools.boards.errors import BoardError

from . import figures


@click.command()
@click.option("--accept", is_flag=True, help="Record what is measured now as the baseline.")
def cli(accept: bool) -> None:
    """Compare sizes and instruction counts of the library with those recorded.

    Exit status 1 if one is more than 3 % larger; `make test` fails then, too.
    """
    try:
        measured = dict(figures.measured_tables())
    except (BenchError, BoardError) as error:
        raise click.ClickException(str(error)) from error
    is_accepted = True
    before = figures.recorded()
    for title, table in measured.items():
        rows = figures.compare(before.get(title, {}), table)
        is_accepted = is_accepted and all(row.is_accepted for row in rows)
        click.echo(figures.shown(title, rows))
        click.echo(figures.level_ratios(table), nl=False)
    if accept:
        figures.accept(measured)
        click.echo(f"accepted: {figures.RECORDED.name}; commit it with the reason")
    elif not is_accepted:
        sys.exit(1)
