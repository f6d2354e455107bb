"""The README's program runs as it stands there, under CPython and real MicroPython."""

import re
import subprocess
import sys

import pytest

from tools.project import ROOT

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def program(index, port, folder):
    code = BLOCKS[index].replace('"127.0.0.1"', f'"127.0.0.1", {port}')
    assert str(port) in code
    path = folder / "program.py"
    path.write_text(code)
    return path


def test_readme_has_the_two_programs():
    assert len(BLOCKS) == 2
    assert len(BLOCKS[0].splitlines()) < 30


@pytest.mark.parametrize("index", range(2))
def test_readme_program_runs_under_cpython(index, mosquitto, tmp_path):
    path = program(index, mosquitto.port, tmp_path)
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "lib")},
        check=False,
    )
    check(index, done)


@pytest.mark.parametrize("index", range(2))
def test_readme_program_runs_under_micropython(index, micropython, mosquitto, tmp_path):
    path = program(index, mosquitto.port, tmp_path)
    check(index, micropython.run(path, timeout=60, cwd=tmp_path))


def check(index, done):
    assert done.returncode == 0, done.stderr
    if index == 0:
        assert "led 1" in done.stdout
        assert "all acknowledged: True" in done.stdout
