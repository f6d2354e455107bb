"""`dist`: everything that others install."""

from tools.project import ROOT
from pathlib import Path

import click

from tools.boards.places import shown

from .make import make_all


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=ROOT / "dist",
    help="Folder that is emptied and filled; one that holds files of yours is refused.  "
    "Default: dist/.",
)
def cli(out: Path) -> None:
    """Build the mip index, the ROMFS image, a folder to freeze, sdist and wheel."""
    for path in make_all(out):
        click.echo(shown(path))
