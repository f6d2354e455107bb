"""`python -m host_tests lint`: all checks of the source, or those named.

Each check is an ordinary program with its settings in pyproject.toml; all of them
run, and the exit status is 1 if any found something.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from tools.boards.compile import compile_file
from tools.boards.errors import BoardError
from tools.project import ROOT

from .ports import missing_names

ARCHITECTURES = ("armv6m", "armv7emsp", "xtensawin", "rv32imc")


def _run(*words: str) -> bool:
    return subprocess.run([sys.executable, "-m", *words], cwd=ROOT).returncode == 0


def style() -> bool:
    """Whether ruff finds nothing to mend, in rules and in layout."""
    rules = _run("ruff", "check", "--quiet", ".")
    return _run("ruff", "format", "--quiet", "--check", ".") and rules


def spelling() -> bool:
    """Whether codespell finds no misspelled word."""
    return _run("codespell_lib", ".")


def types() -> bool:
    """Whether mypy accepts the host tools."""
    return _run("mypy", "--no-error-summary")


def boards() -> bool:
    """Whether mpy-cross compiles library and firmware for every architecture."""
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        for source in [*ROOT.glob("lib/**/*.py"), *ROOT.glob("firmware/**/*.py")]:
            for architecture in ARCHITECTURES:
                try:
                    compile_file(source, Path(folder) / "module.mpy", architecture)
                except BoardError as error:
                    errors.append(f"{architecture}: {error.format_message()}")
    click.echo("\n".join(errors), nl=bool(errors))
    return not errors


def names() -> bool:
    """Whether every name that the device code takes from MicroPython exists on the boards."""
    missing = missing_names()
    click.echo("\n".join(missing), nl=bool(missing))
    return not missing


CHECKS: dict[str, Callable[[], bool]] = {
    "style": style,
    "spelling": spelling,
    "types": types,
    "names": names,
    "boards": boards,
}


@click.command()
@click.argument("checks", nargs=-1, type=click.Choice(["all", *CHECKS]), required=True)
def cli(checks: tuple[str, ...]) -> None:
    """Check the source: style, spelling, types, names (that boards know),
    boards (compiles for each), or all."""
    wanted = CHECKS if "all" in checks else dict.fromkeys(checks)
    results = {}
    for name in wanted:
        click.echo(f"lint: {name}")
        results[name] = CHECKS[name]()
    if failed := [name for name, is_clean in results.items() if not is_clean]:
        raise click.ClickException(f"lint: mend what {', '.join(failed)} found, see above")
    click.echo("lint: nothing found")
