"""Processor instructions for one publish, counted by valgrind's callgrind.

64-bit MicroPython, 256 KB heap, .mpy files, topic of 13 and payload of 64 bytes, over
TCP on the loopback.  The difference of a run with 2N and one with N messages is N messages
without the start; N is so large that a peer's garbage collections count.  QoS 1
ends when the acknowledgement was handled.  The kernel's share is not counted.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .answerer import Answerer
from .figures import BenchError, Figure
from .subjects import Bench, Subject

TITLE = "Instructions per publish, 64 bits"

_HEAP_BYTES = 256 * 1024
_RUN_S = 300
_COUNT = 200
_PEER_COUNT = 3000
_BUDGETS = {0: 15000, 1: 30000}
_PUBLISHED = {0: 29714, 1: 40773}
_COLLECTED = re.compile(r"Collected : (\d+)")


def measure(bench: Bench) -> Iterator[Figure]:
    """One figure for QoS 0 and one for QoS 1."""
    for qos, budget in _BUDGETS.items():
        yield Figure(
            f"publish QoS {qos}",
            per_publish(bench, bench.ours, qos),
            budget,
            per_publish(bench, bench.simple, qos, _PEER_COUNT) if bench.simple else None,
            _PUBLISHED[qos],
            per_publish(bench, bench.bare, qos),
        )


def per_publish(bench: Bench, subject: Subject, qos: int, count: int = _COUNT) -> float:
    """Instructions for one message.  Raises BenchError."""
    with tempfile.TemporaryDirectory() as name, Answerer(is_quick=True) as far_end:
        folder = Path(name)
        subject.compile("publish", folder)
        runs = [_count(bench, folder, far_end.port, n, qos) for n in (count, 2 * count)]
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
        raise BenchError(f"the publishing program failed under valgrind: {_reason(done)}")
    return int(found[1])


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("==")]
    return lines[-1] if lines else "no output"
