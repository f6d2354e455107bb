"""The kit does the same under CPython and under every MicroPython."""

from pathlib import Path

import pytest

from host_tests.running import CPYTHON
from tools.micropython import interpreters
from tools.project import ROOT


@pytest.mark.parametrize("one", (CPYTHON,) + interpreters(), ids=lambda one: one.id)
def test_kit(one):
    done = one.run(Path(__file__).parent / "on_board.py", micropypath=[ROOT])
    assert done.stdout == "all is as it should be\n", done.stdout + done.stderr
