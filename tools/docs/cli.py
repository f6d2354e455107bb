"""`python -m tools docs build` and `serve`: MkDocs with the settings of mkdocs.yml."""

import logging
import os
from pathlib import Path

import click

from tools.folders import make_empty
from tools.project import ROOT


@click.group()
def cli() -> None:
    """The documentation site."""


@cli.command()
@click.option("--out", type=click.Path(file_okay=False), help="Folder, else build/site.")
def build(out: str | None) -> None:
    """Build the site; a link to nowhere or a page without a place fails."""
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config
    from mkdocs.exceptions import MkDocsException

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    os.chdir(ROOT)
    settings = {"site_dir": str(make_empty(Path(out)))} if out else {}
    try:
        config = load_config("mkdocs.yml", **settings)
        config.plugins.on_startup(command="build", dirty=False)
        build_site(config)
    except MkDocsException as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"open {Path(config.site_dir) / 'index.html'}")


@cli.command()
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True)
def serve(port: int) -> None:
    """Show the site on this computer, built anew at each change, until Ctrl-C."""
    from mkdocs.commands.serve import serve as serve_site

    os.chdir(ROOT)
    click.echo(f"building; then open http://127.0.0.1:{port}")
    serve_site("mkdocs.yml", dev_addr=f"127.0.0.1:{port}")
