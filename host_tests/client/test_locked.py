"""Nothing allocates between two connections: what scripts that are `locked` cannot show, under
every real MicroPython, with the heap locked.  The design's §5."""

import functools

import pytest

from host_tests.client import locked_rounds
from host_tests.client.runner import FOLDER, call_on, functions_of, run_module
from tools.project import ROOT

LEVELS = (3, 5)
PATHS = [
    (file, name)
    for file in ("paths.py", "scheduled.py")
    for name in functions_of(FOLDER / "locked" / file, LEVELS)
]
results_of = functools.cache(run_module)


@pytest.mark.parametrize(("file", "name"), PATHS)
def test_path_with_locked_heap_allocates_nothing(micropython, file, name):
    results = results_of(micropython, FOLDER / "locked" / file, levels=LEVELS)
    assert results.get(name, "was not run") == ""


def test_script_that_allocates_fails_where_it_is_locked(micropython):
    """The proof is worth something only if an allocation does raise."""
    program = (
        "from host_tests.client.scripts import Script\n"
        "script = Script('allocates locked')\n"
        "script.lines = [(1, 'on_message message.qos 0 / B: PUBLISH')]\n"
        "try:\n    script.play(3)\n"
        "except AssertionError as error:\n    print('heap is locked' in str(error))\n"
    )
    done = micropython.run(program, micropypath=[ROOT, ROOT / "lib"])
    assert done.stdout == "True\n", done.stdout + done.stderr


@pytest.mark.parametrize("level", LEVELS)
def test_messages_through_a_real_broker_with_locked_heap(micropython, mosquitto, level):
    args, path = (mosquitto.port, level), [ROOT, ROOT / "lib"]
    found = call_on(micropython, locked_rounds, "run", args, path, 512 * 1024)
    assert found == ([20, 20, 20], 0)
