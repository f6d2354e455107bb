"""`python -m host_tests fuzz run` and `replay`: hunt with libFuzzer, look at one finding."""

import subprocess
import sys
from pathlib import Path

import click

from host_tests import library  # noqa: F401 - makes umqtt31 importable
from tools.project import ROOT

CORPUS = ROOT / "host_tests" / "client" / "corpus"
WORK = ROOT / "build" / "fuzz"


@click.group()
def cli() -> None:
    """Hostile bytes from a broker: only MQTTError may come out."""


@cli.command()
@click.option(
    "--seconds",
    type=click.IntRange(1),  # libFuzzer takes 0 for ever
    default=300,
    show_default=True,
    help="How long to hunt.",
)
def run(seconds: int) -> None:
    """Hunt, guided by the coverage of the client; exit status 1 with a finding."""
    grown = WORK / "corpus"
    grown.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "host_tests", "fuzz", "hunt", "--", str(grown), str(CORPUS)]
    command += [f"-max_total_time={seconds}", f"-artifact_prefix={WORK}/"]
    command += ["-max_len=400", "-timeout=10", "-rss_limit_mb=2000", "-print_final_stats=1"]
    status = subprocess.run(command, cwd=ROOT).returncode
    if status == 2:
        raise click.ClickException("atheris is missing (Linux on x86-64 only): run `make setup`")
    if status:
        click.echo(f"finding: python -m host_tests fuzz replay {WORK}/crash-…", err=True)
        raise SystemExit(1)
    if not any(grown.iterdir()):
        raise click.ClickException("no input was worth keeping: is the client instrumented?")
    click.echo(f"no finding in {seconds} s; {len(list(grown.iterdir()))} inputs kept in {grown}")


@cli.command(hidden=True)
@click.argument("words", nargs=-1)
def hunt(words: tuple[str, ...]) -> None:
    """The process that libFuzzer runs in: instruments the client and never returns."""
    try:
        import atheris
    except ImportError:
        sys.exit(2)
    assert "umqtt31" not in sys.modules  # else it would stay without instruments
    with atheris.instrument_imports(include=["umqtt31"]):
        from .target import check
    atheris.Setup([sys.argv[0], *words], check)
    atheris.Fuzz()


@cli.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def replay(file: Path) -> None:
    """Run one input again and tell what is wrong with it; exit status 1 if something is."""
    from .target import Finding, check

    try:
        check(file.read_bytes())
    except Finding as finding:
        click.echo(f"{file.name}: {finding}", err=True)
        raise SystemExit(1) from finding
    click.echo(f"{file.name}: nothing wrong")
