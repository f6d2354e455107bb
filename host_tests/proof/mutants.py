"""The mutation score: mutmut changes session and journal, one operator at a time.

Runs in a copy below build/mutants, so that nobody's checkout is touched, with the
package beside the tests: mutmut knows a module by its path, which has to be its name.
What to change and which tests have to notice stand in pyproject.toml, [tool.mutmut].
"""

import json
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import click
from mutmut.stats import status_by_exit_code
from rich.console import Console
from rich.table import Table

from tools.project import ROOT

WORK = ROOT / "build" / "mutants"
LIMIT_PERCENT = 85.0

_COPIED = ("host_tests", "tools", "lib", "firmware", "boards", "docs", "pyproject.toml")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "node_modules")
_NOTICED = ("killed", "timeout")  # one that never ends is noticed, too


def measure(is_fresh: bool, shows_survivors: bool) -> bool:
    """Run what is new, changed or survived the last run, print the scores -> high enough?"""
    if is_fresh:
        shutil.rmtree(WORK, ignore_errors=True)
    _copy()
    _forget_all_but_killed()
    mutmut = Path(sys.executable).with_name("mutmut")
    if subprocess.run([mutmut, "run"], cwd=WORK).returncode:
        raise click.ClickException(f"mutmut did not get through: see above, and {WORK}")
    results = _results()
    console = Console()
    console.print(_table(results))
    for (_, name), status in results.items():
        if shows_survivors and status not in _NOTICED:
            subprocess.run([mutmut, "show", name], cwd=WORK)
    score = _score(Counter(results.values()))
    console.print(f"mutation score {score:.1f} %, limit {LIMIT_PERCENT:.0f} %")
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
    for path in _notes():
        notes = json.loads(path.read_text())
        codes = notes["exit_code_by_key"]
        for name, code in codes.items():
            if status_by_exit_code[code] != "killed":
                codes[name] = None
        path.write_text(json.dumps(notes))


def _notes() -> list[Path]:
    return sorted((WORK / "mutants" / "umqtt31").glob("*.py.meta"))


def _results() -> dict[tuple[str, str], str]:
    """(module, mutant) -> what became of it, in mutmut's words."""
    return {
        (path.name.partition(".")[0], name): status_by_exit_code[code]
        for path in _notes()
        for name, code in json.loads(path.read_text())["exit_code_by_key"].items()
    }


def _score(statuses: Counter[str]) -> float:
    return 100 * sum(statuses[one] for one in _NOTICED) / max(1, statuses.total())


def _table(results: dict[tuple[str, str], str]) -> Table:
    table = Table("module", title="Mutants of the library")
    for heading in ("mutants", *_NOTICED, "score"):
        table.add_column(heading, justify="right")
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for (module, _), status in results.items():
        counts[module][status] += 1
    counts["all"] = sum(counts.values(), Counter())
    for module, found in counts.items():
        row = [f"{n:,}" for n in (found.total(), *(found[one] for one in _NOTICED))]
        table.add_row(module, *row, f"{_score(found):.1f} %")
    return table
