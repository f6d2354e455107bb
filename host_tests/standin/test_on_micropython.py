"""The kit does the same under CPython and under every MicroPython."""

import runpy
from pathlib import Path

from tools.project import ROOT

PROGRAM = Path(__file__).parent / "on_board.py"
SAID = "all is as it should be\n"


def test_kit_on_micropython(micropython):
    done = micropython.run(PROGRAM, micropypath=[ROOT])
    assert done.stdout == SAID, done.stdout + done.stderr


def test_kit_on_cpython(capsys):
    runpy.run_path(str(PROGRAM))
    assert capsys.readouterr().out == SAID
