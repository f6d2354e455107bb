"""The mutation score: mutmut changes session and journal, one operator at a time.

Runs in a copy below build/mutants, so that nobody's checkout is touched, with the
package beside the tests: mutmut knows a module by its path, which has to be its name.
What to change and which tests have to notice stand in pyproject.toml, [tool.mutmut].
"""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from tools.project import ROOT

WORK = ROOT / "build" / "mutants"
LIMIT_PERCENT = 85.0

_COPIED = ("host_tests", "tools", "lib", "firmware", "boards", "docs", "pyproject.toml")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "node_modules")
# What mutmut notes of a mutant: pytest's exit status, or why there is none.
_KILLED = {1, 3}  # a test failed, or pytest did
_NO_TEST = 33
_TIMED_OUT = {-24, 24, 36, 152, 255}  # SIGXCPU, in the ways in which it is told


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
    if shows_survivors:
        _show(mutmut, results)
    score = _score(Counter(kind for kinds in results.values() for kind in kinds.values()))
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
            if _kind(code) != "killed":
                codes[name] = None
        path.write_text(json.dumps(notes))


def _notes() -> list[Path]:
    return sorted((WORK / "mutants" / "umqtt31").glob("*.py.meta"))


def _results() -> dict[str, dict[str, str]]:
    """Module -> mutant -> "killed", "timeout", "no test" or "survived"."""
    results = {}
    for path in _notes():
        codes = json.loads(path.read_text())["exit_code_by_key"]
        if codes:
            module = path.name.partition(".")[0]
            results[module] = {name: _kind(code) for name, code in codes.items()}
    return results


def _kind(code: int | None) -> str:
    if code in _TIMED_OUT:
        return "timeout"
    if code == _NO_TEST:
        return "no test"
    return "killed" if code in _KILLED else "survived"


def _score(kinds: Counter[str]) -> float:
    """A mutant that never ends is noticed, too."""
    return 100 * (kinds["killed"] + kinds["timeout"]) / max(1, kinds.total())


def _table(results: dict[str, dict[str, str]]) -> Table:
    table = Table("module", title="Mutants of the library")
    for heading in ("mutants", "killed", "timed out", "survived", "no test", "score"):
        table.add_column(heading, justify="right")
    counts = {module: Counter(kinds.values()) for module, kinds in results.items()}
    counts["all"] = sum(counts.values(), Counter())
    for module, kinds in counts.items():
        cells = (kinds[kind] for kind in ("killed", "timeout", "survived", "no test"))
        row = [f"{n:,}" for n in (kinds.total(), *cells)]
        table.add_row(module, *row, f"{_score(kinds):.1f} %")
    return table


def _show(mutmut: Path, results: dict[str, dict[str, str]]) -> None:
    for kinds in results.values():
        for name, kind in kinds.items():
            if kind in ("survived", "no test"):
                subprocess.run([mutmut, "show", name], cwd=WORK)
