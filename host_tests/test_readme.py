"""The README's program runs as it stands there, under CPython and real MicroPython."""

import re
import subprocess
import sys

import pytest

from host_tests.patience import SECONDS
from tools.project import ROOT

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


PROGRAMS = ("sends_and_receives", "has_a_journal")


def run_by(start, name, port, folder):
    """Run a program of the README as it stands there, but for the port, and look at its output."""
    code = BLOCKS[PROGRAMS.index(name)]
    assert code.count('"127.0.0.1"') == 1
    path = folder / "program.py"
    path.write_text(code.replace('"127.0.0.1"', f'"127.0.0.1", {port}'))
    done = start(path)
    assert done.returncode == 0, done.stderr
    if name == "sends_and_receives":
        assert "all acknowledged" in done.stdout


def test_readme_has_two_short_programs():
    assert len(BLOCKS) == len(PROGRAMS)
    assert max(len(block.splitlines()) for block in BLOCKS) < 35


@pytest.mark.parametrize("name", PROGRAMS)
def test_readme_program_runs_under_cpython(name, mosquitto, tmp_path):
    def start(path):
        return subprocess.run(
            [sys.executable, str(path)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT / "lib")},
            check=False,
        )

    run_by(start, name, mosquitto.port, tmp_path)


@pytest.mark.parametrize("name", PROGRAMS)
def test_readme_program_runs_under_micropython(name, micropython, mosquitto, tmp_path):
    def start(path):
        return micropython.run(path, timeout=SECONDS, cwd=tmp_path)

    run_by(start, name, mosquitto.port, tmp_path)
