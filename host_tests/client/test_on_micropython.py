"""The wire dialogues again, under every real MicroPython.

Under CPython pytest runs the functions of `dialogues/`, and `test_scripts.py` its scripts; here
each file runs whole, and each of its tests must have been run and be fine.
Under one of them they run with the library as `make build` makes it for boards, too.
"""

import pytest

from host_tests.client.runner import FOLDER, functions_of, run_module
from tools.boards.compile import compile_library
from tools.micropython import choose
from tools.project import ROOT

DIALOGUES = FOLDER / "dialogues"
FILES = sorted([*DIALOGUES.rglob("test_*.py"), *DIALOGUES.rglob("*.txt")])
# These look at what the library keeps to itself, which has other names on a board.
INSIDE = {"test_properties"}


def name_of(path):
    """-> "level_5/test_computed": what pytest shows of the module."""
    return path.relative_to(DIALOGUES).with_suffix("").as_posix()


def check(interpreter, path, library):
    results = run_module(interpreter, path, library=library)
    failures = {name: text for name, text in results.items() if text}
    assert not failures, "\n".join(f"{name}\n{text}" for name, text in failures.items())
    assert sorted(results) == functions_of(path)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_dialogues_of_a_file_hold_on_micropython(micropython, path):
    check(micropython, path, ROOT / "lib")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the library as it goes to boards."""
    folder = tmp_path_factory.mktemp("built")
    compile_library(folder / "umqtt31", "armv6m")
    return folder


@pytest.mark.parametrize(
    "path", [path for path in FILES if name_of(path) not in INSIDE], ids=name_of
)
def test_dialogues_of_a_file_hold_with_the_library_of_boards(built, path):
    check(choose(bits=32), path, built)
