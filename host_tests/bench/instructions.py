"""Processor instructions for one message, sent or received, counted by callgrind.

64-bit MicroPython, 256 KB heap, .mpy files, topic of 13 and payload of 64 bytes, over
TCP on the loopback.  The difference of a run with 2N and one with N messages is N messages
without the start; N is so large that a peer's garbage collections count.  QoS 1
ends when the acknowledgement was handled.  The kernel's share is not counted.
Then the same on a used heap: one full of holes, as loading a program leaves it; and at
level 5, without properties, beside level 4.
"""

import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from .answerer import Answerer, usual_answer
from .figures import BenchError, Figure
from .subjects import Bench, Subject, compile_mpy

TITLE = "Instructions per message, 64 bits"

_HEAP_BYTES = 256 * 1024
_RUN_S = 300
_COUNT = 200
_PEER_COUNT = {"publish": 3000, "receive": 1000}
_BUDGETS = {
    ("publish", 0): 15500,
    ("publish", 1): 43000,
    ("publish", 2): 76000,
    ("receive", 0): 22000,
    ("receive", 1): 29000,
    ("receive", 2): 47000,
}
_BUDGETS_OF_SIMPLE = {("publish", 1): 47000, ("receive", 0): 31000}
_PUBLISHED = {("publish", 0): 29714, ("publish", 1): 40773}
_MOST_GROWTH = 1.1  # on a used heap
_MOST_OF_LEVEL_4 = 1.08  # at level 5
_COLLECTED = re.compile(r"Collected : (\d+)")


def measure(bench: Bench) -> Iterator[Figure]:
    """Four figures for each direction and QoS: on a clean heap, on a used one, at level 5
    and how many percent of level 4 that is."""
    for (program, qos), budget in _BUDGETS.items():
        clean = _usual(bench, program, qos)
        yield Figure(
            f"{program} QoS {qos}",
            clean,
            budget,
            _peer(bench, program, qos),
            _PUBLISHED.get((program, qos)),
            _bare(bench, program, qos),
        )
        used = _usual(bench, program, qos, is_used=True)
        yield Figure("  on a used heap", used, clean * _MOST_GROWTH)
    for program, qos in _BUDGETS:
        older, newer = (_usual(bench, program, qos, level=level) for level in (4, 5))
        yield Figure(f"level 5: {program} QoS {qos}", newer, older * _MOST_OF_LEVEL_4)
        yield Figure("  % of level 4", 100 * newer / older)
    for (program, qos), most in _BUDGETS_OF_SIMPLE.items():
        yield Figure(
            f"simple: {program} QoS {qos}",
            per_message(bench, bench.front, program, qos, _PEER_COUNT[program]),
            most,
            _peer(bench, program, qos),
        )


def _peer(bench: Bench, program: str, qos: int) -> float | None:
    if bench.simple is None or qos == 2:  # which it does not know
        return None
    return per_message(bench, bench.simple, program, qos, _PEER_COUNT[program])


def _bare(bench: Bench, program: str, qos: int) -> float | None:
    if program != "publish" or qos == 2:  # for which it has no program
        return None
    return per_message(bench, bench.bare, program, qos)


def _usual(
    bench: Bench, program: str, qos: int, is_used: bool = False, level: int | None = None
) -> float:
    # How many messages come in one read depends on the time: the median of three runs.
    runs = (
        per_message(bench, bench.ours, program, qos, is_used=is_used, level=level)
        for _ in range(3)
    )
    return statistics.median(runs)


def per_message(
    bench: Bench,
    subject: Subject,
    program: str,
    qos: int,
    count: int = _COUNT,
    is_used: bool = False,
    level: int | None = None,
) -> float:
    """Instructions for one message; `level` None: the subject's own.  Raises BenchError."""
    answer = partial(usual_answer, level=level or 4)
    with tempfile.TemporaryDirectory() as name, Answerer(True, answer) as far_end:
        folder = Path(name)
        subject.compile(program, folder)
        more: list[object] = [level] if level else []
        if is_used:
            compile_mpy(subject.program("used"), folder / "used.mpy")
            more.append("used")
        runs = [_count(bench, folder, far_end.port, n, qos, *more) for n in (count, 2 * count)]
    return (runs[1] - runs[0]) / count


def _count(bench: Bench, folder: Path, *args: object) -> int:
    if not shutil.which("valgrind"):
        raise BenchError("valgrind is not installed: run `make setup` or install it")
    interpreter = bench.large
    program = [*interpreter.command, "-X", f"heapsize={_HEAP_BYTES}", "-m", "main"]
    out = folder / "callgrind.out"
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *program, *map(str, args)],
        env=interpreter.environment([folder]),
        capture_output=True,
        text=True,
        timeout=_RUN_S,
    )
    found = _COLLECTED.search(done.stderr)
    if done.returncode or not found:
        raise BenchError(f"the program failed under valgrind: {_reason(done)}")
    return int(found[1])


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("==")]
    return lines[-1] if lines else "no output"
