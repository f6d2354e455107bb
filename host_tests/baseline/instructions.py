"""Instructions of each kind of work, counted by callgrind, the same in every run.

A count depends on nothing but the library and the interpreter: the far end is in the
program, its clock stands still, the environment names the modules' folder and no more.
What a change of the library shifts without making it faster or slower is how MicroPython
numbers the names in it, 1 to 2 % of a count: each row is the mean of several numberings.
"""

import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from host_tests.bench.figures import BenchError
from host_tests.bench.subjects import compile_mpy
from tools.boards.compile import library_sources
from tools.micropython import Interpreter, interpreters

_STEPS = Path(__file__).parent / "device" / "steps.py"
_HEAP_BYTES = 512 * 1024
_COUNT = 20
_NAMES = range(0, 128, 14)
_RUN_S = 300
_TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)


def can_count() -> bool:
    """Does this computer count as the recorded one did: Linux on x86-64 with valgrind?"""
    is_same = sys.platform == "linux" and platform.machine() == "x86_64"
    return is_same and shutil.which("valgrind") is not None


def countable() -> list[Interpreter]:
    """The interpreters whose instructions are counted."""
    return [one for one in interpreters() if one.bits == 64] if can_count() else []


def count(interpreter: Interpreter, library: Path) -> dict[str, int]:
    """{kind of work: instructions for one} of the library's modules in `library`.

    Raises BenchError.
    """
    return _counted(interpreter, library, _NAMES)


def count_once(interpreter: Interpreter, library: Path) -> dict[str, int]:
    """The same with one numbering of the names: quick, and good to a few percent."""
    return _counted(interpreter, library, _NAMES[:1])


def _counted(interpreter: Interpreter, library: Path, numberings: Sequence[int]) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compile_mpy(_STEPS, folder / "steps.mpy")
        for source in library_sources(library):
            compile_mpy(source, folder / "umqtt31" / f"{source.stem}.mpy")
        runs = [_run(interpreter, folder, names) for names in numberings]
    return {row: round(statistics.mean(run[row] for run in runs)) for row in runs[0]}


def _run(interpreter: Interpreter, folder: Path, names: int) -> dict[str, float]:
    here = folder / f"names{names:03}"
    here.mkdir()
    callgrind = ["--tool=callgrind", "--dump-before=erf", "--combine-dumps=yes"]
    done = subprocess.run(
        ["valgrind", *callgrind, "--callgrind-out-file=counts", *interpreter.command]
        + ["-X", f"heapsize={_HEAP_BYTES}", "-m", "steps", str(_COUNT), str(names)],
        cwd=here,
        env={"PATH": os.environ["PATH"], "MICROPYPATH": "..:.frozen"},
        capture_output=True,
        text=True,
        timeout=_RUN_S,
    )
    if done.returncode:
        last = [line for line in done.stderr.splitlines() if not line.startswith("==")][-1:]
        raise BenchError(f"the program failed under valgrind: {last[0] if last else 'no output'}")
    # One part up to the first mark, then the work and what comes before the next by turns.
    rows = done.stdout.split("\n")[:-1]
    parts = [int(text) for text in _TOTALS.findall((here / "counts").read_text())]
    work = dict(zip(rows, parts[1::2]))  # of the second round, as names come twice
    if len(parts) != 2 * len(rows) + 1:
        raise BenchError(f"callgrind counted {len(parts)} parts, not {2 * len(rows) + 1}")
    nothing = work.pop("nothing")
    return {row: (total - nothing) / _COUNT for row, total in work.items()}
