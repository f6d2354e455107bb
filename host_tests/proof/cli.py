"""`python -m host_tests proof mutants`: the mutation score.

mutmut changes session and journal, one operator at a time.  It runs in a copy below
build/mutants, so that nobody's checkout is touched, with the package beside the tests:
mutmut knows a module by its path, which has to be its name.
What to change and which tests have to notice stand in pyproject.toml, [tool.mutmut].
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
from mutmut.stats import status_by_exit_code

from tools.project import ROOT

_WORK = ROOT / "build" / "mutants"
_LIMIT_PERCENT = 85.0

_MUTMUT = Path(sys.executable).with_name("mutmut")
_COPIED = ("host_tests", "tools", "lib", "firmware", "boards", "docs", "pyproject.toml")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "node_modules")


@click.group()
def cli() -> None:
    """How far the tests of the library go."""


@cli.command("mutants")
@click.option("--all", "is_fresh", is_flag=True, help="Forget what earlier runs found.")
@click.option("--survivors", is_flag=True, help="Print each mutant that no test notices.")
def run_mutants(is_fresh: bool, survivors: bool) -> None:
    """Mutation score of session and journal; exit status 1 if it is below the limit.

    What is new, changed or survived the last run is run.
    """
    if is_fresh:
        shutil.rmtree(_WORK, ignore_errors=True)
    _copy()
    _forget_all_but_killed()
    if subprocess.run([_MUTMUT, "run"], cwd=_WORK).returncode:
        raise click.ClickException(f"mutmut did not get through: see above, and {_WORK}")
    subprocess.run([_MUTMUT, "export-cicd-stats"], cwd=_WORK, check=True)
    counts = json.loads((_WORK / "mutants" / "mutmut-cicd-stats.json").read_text())
    if survivors:
        results = subprocess.check_output([_MUTMUT, "results"], cwd=_WORK, text=True)
        for name in re.findall(r"^ *(\S+): (?!timeout)", results, re.M):
            subprocess.run([_MUTMUT, "show", name], cwd=_WORK)
    noticed = counts["killed"] + counts["timeout"]  # one that never ends is noticed, too
    score = 100 * noticed / max(1, counts["total"])
    click.echo(f"{noticed:,} of {counts['total']:,} mutants noticed")
    click.echo(f"mutation score {score:.1f} %, limit {_LIMIT_PERCENT:.0f} %")
    if score < _LIMIT_PERCENT:
        raise SystemExit(1)


def _copy() -> None:
    _WORK.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        source, target = ROOT / name, _WORK / name
        if source.is_file():
            shutil.copy2(source, target)
        else:
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=_NOT_COPIED)
    shutil.rmtree(_WORK / "umqtt31", ignore_errors=True)
    shutil.copytree(ROOT / "lib" / "umqtt31", _WORK / "umqtt31", ignore=_NOT_COPIED)


def _forget_all_but_killed() -> None:
    # The tests may be better now, or the computer less busy.
    for path in (_WORK / "mutants" / "umqtt31").glob("*.py.meta"):
        notes = json.loads(path.read_text())
        codes = notes["exit_code_by_key"]
        for name, code in codes.items():
            if status_by_exit_code[code] != "killed":
                codes[name] = None
        path.write_text(json.dumps(notes))
