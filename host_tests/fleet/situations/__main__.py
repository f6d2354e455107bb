"""`python -m host_tests.fleet.situations FOLDER [NAME …]` records them anew."""

from pathlib import Path

import click

from .record import record


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
def main(folder, names):
    """Record all situations, or the NAMES given, below FOLDER."""
    for name in record(folder, names):
        click.echo(name)


main()
