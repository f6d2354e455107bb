"""The smallest heap in which 1,000 QoS 1 messages go there and back, on 32 bits.

Everything is compiled to .mpy, the program too, and loaded into that heap, as on a
board where nothing is frozen.
"""

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .answerer import Answerer
from .figures import BenchError, Figure
from .subjects import Bench, Subject

TITLE = "Smallest heap in bytes for 1,000 QoS 1 messages there and back, 32 bits"

_COUNT = 1000
_STEP_BYTES = 256
_LEAST, _MOST = 2 * 1024, 128 * 1024
_RUN_S = 60
_BUDGET = 18 * 1024
_PUBLISHED = 6 * 1024


def measure(bench: Bench) -> Iterator[Figure]:
    """One figure."""
    yield Figure(
        "there and back, window 4",
        find(bench, bench.ours),
        budget=_BUDGET,
        peer=find(bench, bench.simple) if bench.simple else None,
        published=_PUBLISHED,
    )


def find(bench: Bench, subject: Subject, count: int = _COUNT) -> int:
    """The heap in bytes, to within 256.  Raises BenchError."""
    with tempfile.TemporaryDirectory() as folder, Answerer(is_quick=True) as far_end:
        subject.compile("there_and_back", Path(folder))

        def is_enough(heap_bytes: int) -> bool:
            return runs(bench, Path(folder), heap_bytes, far_end.port, count)

        low, high = _LEAST, _MOST
        if not is_enough(high):
            raise BenchError(f"{subject.name}: {_MOST} bytes of heap are not enough")
        while high - low > _STEP_BYTES:
            middle = (low + high) // 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def runs(bench: Bench, folder: Path, heap_bytes: int, port: int, count: int = _COUNT) -> bool:
    """Do `count` messages get through in that heap?"""
    interpreter = bench.small
    command = [*interpreter.command, "-X", f"heapsize={heap_bytes}", "-m", "main", str(port)]
    try:
        done = subprocess.run(
            [*command, str(count)],
            env=interpreter.environment([folder]),
            capture_output=True,
            text=True,
            timeout=_RUN_S,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.stdout.strip() == "done"
