"""The mutation score: mutmut changes session and journal, one operator at a time.

Runs in a copy below build/mutants, so that nobody's checkout is touched, with the
package beside the tests: mutmut knows a module by its path, which has to be its name.
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

WORK = ROOT / "build" / "mutants"
LIMIT_PERCENT = 85.0

_MUTMUT = Path(sys.executable).with_name("mutmut")
_COPIED = ("host_tests", "tools", "lib", "firmware", "boards", "docs", "pyproject.toml")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "node_modules")


def measure(is_fresh: bool, shows_survivors: bool) -> bool:
    """Run what is new, changed or survived the last run, print the score -> high enough?"""
    if is_fresh:
        shutil.rmtree(WORK, ignore_errors=True)
    _copy()
    _forget_all_but_killed()
    if subprocess.run([_MUTMUT, "run"], cwd=WORK).returncode:
        raise click.ClickException(f"mutmut did not get through: see above, and {WORK}")
    subprocess.run([_MUTMUT, "export-cicd-stats"], cwd=WORK, check=True)
    counts = json.loads((WORK / "mutants" / "mutmut-cicd-stats.json").read_text())
    if shows_survivors:
        results = subprocess.check_output([_MUTMUT, "results"], cwd=WORK, text=True)
        for name in re.findall(r"^ *(\S+): (?!timeout)", results, re.M):
            subprocess.run([_MUTMUT, "show", name], cwd=WORK)
    noticed = counts["killed"] + counts["timeout"]  # one that never ends is noticed, too
    score = 100 * noticed / max(1, counts["total"])
    click.echo(f"{noticed:,} of {counts['total']:,} mutants noticed")
    click.echo(f"mutation score {score:.1f} %, limit {LIMIT_PERCENT:.0f} %")
    return score >= LIMIT_PERCENT


def _copy() -> None:
    WORK.mkdir(parents=True, exist_ok=True)
    for name in _COPIED:
        source, target = ROOT / name, WORK / name
        if source.is_file():
            shutil.copy2(source, target)
        else:
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=_NOT_COPIED)
    shutil.rmtree(WORK / "umqtt31", ignore_errors=True)
    shutil.copytree(ROOT / "lib" / "umqtt31", WORK / "umqtt31", ignore=_NOT_COPIED)


def _forget_all_but_killed() -> None:
    # The tests may be better now, or the computer less busy.
    for path in (WORK / "mutants" / "umqtt31").glob("*.py.meta"):
        notes = json.loads(path.read_text())
        codes = notes["exit_code_by_key"]
        for name, code in codes.items():
            if status_by_exit_code[code] != "killed":
                codes[name] = None
        path.write_text(json.dumps(notes))
