"""Nothing allocates between two connections: every path of `locked/` under every
real MicroPython, with the heap locked.  The design's §5."""

import functools

import pytest

from host_tests.client.runner import FOLDER, functions_of, run_module
from tools.project import ROOT

LEVELS = (3, 5)
PATHS = [
    (file, name)
    for file in ("paths.txt", "paths.py", "scheduled.py")
    for name in functions_of(FOLDER / "locked" / file, LEVELS)
]
results_of = functools.cache(run_module)


@pytest.mark.parametrize(("file", "name"), PATHS)
def test_path_with_locked_heap_allocates_nothing(micropython, file, name):
    results = results_of(micropython, FOLDER / "locked" / file, 1_000_000, LEVELS)
    assert results.get(name, "was not run") == ""


def test_heap_lock_is_real_on_every_interpreter(micropython):
    """The proof is worth something only if an allocation does raise."""
    program = (
        "from micropython import heap_lock, heap_unlock\n"
        "data = bytearray(100)\n"
        "heap_lock()\n"
        "try:\n    data[1:50]\n    found = 1\nexcept MemoryError:\n    found = 2\n"
        "heap_unlock()\nprint(found)\n"
    )
    assert micropython.run(program).stdout == "2\n"


@pytest.mark.parametrize("level", LEVELS)
def test_messages_through_a_real_broker_with_locked_heap(micropython, mosquitto, level):
    done = micropython.run(
        FOLDER / "locked_rounds.py",
        args=[mosquitto.port, "locked", level],
        micropypath=[ROOT, ROOT / "lib"],
        heap_bytes=512 * 1024,
    )
    assert done.stdout == "[20, 20, 20] 0\n", done.stdout + done.stderr
