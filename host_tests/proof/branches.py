"""Branch coverage of lib/umqtt31 by the tests that run in one process.

What is left out, and why, stands in pyproject.toml, [tool.coverage.report], or at the
line itself; so does the limit.
"""

import json
import os
import subprocess
import sys

import click
import coverage

from tools.project import ROOT

from . import selection

WORK = ROOT / "build" / "coverage"
_LIMIT = "report:fail_under"


def measure() -> bool:
    """Run the tests, print the table -> is coverage at or above the limit?"""
    WORK.mkdir(parents=True, exist_ok=True)
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *selection.pytest_arguments()]
    if _coverage("run", *tests):
        raise click.ClickException("tests fail, so their coverage says nothing: see above")
    figures = WORK / "coverage.json"
    _coverage("json", "-q", "--fail-under=0", "-o", str(figures))
    _coverage("report", "--fail-under=0")
    totals = json.loads(figures.read_text())["totals"]
    limit = coverage.Coverage(config_file=str(ROOT / "pyproject.toml")).get_option(_LIMIT)
    click.echo(
        f"branches taken: {totals['covered_branches']} of {totals['num_branches']},"
        f" {totals['percent_branches_covered']:.1f} %"
    )
    return totals["percent_branches_covered"] >= limit


def _coverage(*args: str) -> int:
    environment = {**os.environ, "COVERAGE_FILE": str(WORK / "data")}
    command = [sys.executable, "-m", "coverage", *args]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode
