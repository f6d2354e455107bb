"""Branch coverage of lib/umqtt31 by the tests that exercise it inside this process.

Left out are those that start MicroPython, and the long campaigns, which run the simulator in
processes of their own and find nothing that these do not reach.  Which lines do not count, and
why, stands in pyproject.toml, [tool.coverage.report], or at the line itself; so does the limit.
"""

import json
import os
import subprocess
import sys
import tomllib

import click

from tools.project import ROOT

WORK = ROOT / "build" / "coverage"
_FOLDERS = ("host_tests/client", "host_tests/journal", "host_tests/sim", "host_tests/tls")
_ELSEWHERE = (
    "client/test_conformance.py",
    "client/test_locked.py",
    "client/test_on_micropython.py",
    "journal/test_on_micropython.py",
)
_LONG = (
    "journal/test_powercut.py::test_journal_cut_at_any_operation_recovers_the_state_before_or_after",
    "journal/test_powercut.py::test_journal_of_any_sizes_when_cut_recovers_the_state_before_or_after",
    "journal/test_powercut.py::test_journal_wears_all_blocks_alike",
    "sim/test_campaign.py::test_default_run_of_all_schedules_breaks_no_promise",
    "sim/test_campaign.py::test_wrong_client_is_caught_by_the_default_run",
    "client/test_hostile.py::test_generated_inputs_find_nothing",
    "client/test_hostile.py::test_hostile_inputs_find_nothing_on_micropython",
    "tls/test_errors.py::test_handshake_without_memory_says_how_much_it_takes",
    "tls/test_stream.py::test_messages_pass_both_ways_with_locked_heap",
)


def pytest_arguments() -> list[str]:
    """What to hand to pytest, to be run in the root of the project."""
    ignored = [f"--ignore=host_tests/{path}" for path in _ELSEWHERE]
    return [*_FOLDERS, *ignored, *(f"--deselect=host_tests/{test}" for test in _LONG)]


def measure() -> bool:
    """Run the tests, print the table -> is coverage at or above the limit?"""
    WORK.mkdir(parents=True, exist_ok=True)
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *pytest_arguments()]
    if _coverage("run", *tests):
        raise click.ClickException("tests fail, so their coverage says nothing: see above")
    figures = WORK / "coverage.json"
    _coverage("json", "-q", "--fail-under=0", "-o", str(figures))
    _coverage("report", "--fail-under=0")
    totals = json.loads(figures.read_text())["totals"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    click.echo(
        f"branches taken: {totals['covered_branches']} of {totals['num_branches']},"
        f" {totals['percent_branches_covered']:.1f} %"
    )
    return (
        totals["percent_branches_covered"] >= project["tool"]["coverage"]["report"]["fail_under"]
    )


def _coverage(*args: str) -> int:
    environment = {**os.environ, "COVERAGE_FILE": str(WORK / "data")}
    command = [sys.executable, "-m", "coverage", *args]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode
