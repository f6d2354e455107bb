"""The smallest heap in which 1,000 QoS 1 messages go there and back, on 32 bits.

Everything is compiled to .mpy, the program too, and loaded into that heap, as on a
board where nothing is frozen; or it is run in place from a ROMFS image, as on a board
that has a partition for one.
"""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.boards.compile import tree_files
from tools.boards.romfs import make_romfs

from .answerer import Answerer
from .figures import BenchError, Figure
from .subjects import FROM_ROM, Bench, Subject, compile_mpy

TITLE = "Smallest heap in bytes for 1,000 QoS 1 messages there and back, 32 bits"

_COUNT = 1000
_STEP_BYTES = 256
_LEAST, _MOST = 2 * 1024, 128 * 1024
_RUN_S = 60
_BUDGET = 18 * 1024
_ROM_BUDGET = 12 * 1024
_BUDGET_OF_SIMPLE = 20 * 1024
_PUBLISHED = 6 * 1024


def measure(bench: Bench) -> Iterator[Figure]:
    """One figure for .mpy files, one for ROMFS, and both as boards get the library; of
    umqtt31.simple without that which no board gets."""
    yield Figure(
        "window 4, .mpy",
        find(bench, bench.ours),
        budget=_BUDGET,
        peer=find(bench, bench.simple) if bench.simple else None,
        published=_PUBLISHED,
    )
    yield Figure("  as boards get it", find(bench, bench.built), budget=_BUDGET)
    yield Figure("window 4, ROMFS", find_in_rom(bench, bench.ours), budget=_ROM_BUDGET)
    yield Figure("  as boards get it", find_in_rom(bench, bench.built), budget=_ROM_BUDGET)
    yield Figure("simple, .mpy", find(bench, bench.front), budget=_BUDGET_OF_SIMPLE)
    yield Figure("  as boards get it", find(bench, bench.front_built), _BUDGET_OF_SIMPLE)
    in_rom = find_in_rom(bench, bench.front_built)
    yield Figure("  the same, ROMFS", in_rom, _BUDGET_OF_SIMPLE)


def find(bench: Bench, subject: Subject) -> int:
    """The heap in bytes, to within 256, when .mpy files are loaded.  Raises BenchError."""
    with tempfile.TemporaryDirectory() as name:
        subject.compile("there_and_back", Path(name))
        return _search(bench, Path(name))


def find_in_rom(bench: Bench, subject: Subject) -> int:
    """The same for umqtt31 run in place."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subject.compile("there_and_back", folder / "rom")
        (folder / "rom" / "main.mpy").rename(folder / "rom" / "program.mpy")
        image = folder / "image.romfs"
        image.write_bytes(make_romfs(tree_files(folder / "rom")))
        compile_mpy(FROM_ROM, folder / "main.mpy")
        return _search(bench, folder, image)


def _search(bench: Bench, folder: Path, *args: object) -> int:
    with Answerer(is_quick=True) as far_end:

        def is_enough(heap_bytes: int) -> bool:
            return runs(bench, folder, heap_bytes, *args, far_end.port, _COUNT)

        return bisect(is_enough)


def bisect(is_enough: Callable[[int], bool]) -> int:
    """The smallest heap in bytes that is enough, to within 256.  Raises BenchError."""
    low, high = _LEAST, _MOST
    if not is_enough(high):
        raise BenchError(f"the program does not run in {_MOST} bytes of heap")
    while high - low > _STEP_BYTES:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def runs(bench: Bench, folder: Path, heap_bytes: int, *args: object) -> bool:
    """Does `folder`'s main.mpy come to its end in that heap?"""
    interpreter = bench.small
    heap = ["-X", f"heapsize={heap_bytes}"]
    try:
        done = subprocess.run(
            [*interpreter.command, *heap, "-m", "main", *map(str, args)],
            env=interpreter.environment([folder]),
            capture_output=True,
            text=True,
            timeout=_RUN_S,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.stdout.strip() == "done"
