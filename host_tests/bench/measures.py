"""Figures of every client: heap, bytecode, smallest heap, instructions, messages a second.

What measures takes a client and the folder of peers -> {row: figure}; what the client does not
do is not in it.
"""

import os
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tools.boards.compile import make_romfs
from tools.micropython import choose

from . import BenchError
from .answerer import Answerer, giving
from .catalogue import DEVICE, Client, compile_mpy

Rows = dict[str, dict[str, float]]  # {row: {client's title: figure}}
Work = Callable[[Client, Path], dict[str, float]]

WINDOWS = (1, 10, 100)
_UNCOLLECTED_BYTES = 16 * 1024 * 1024
_HEAP_COUNT = 100
_BACK_COUNT = 200
_BACK_S = 30  # some do not end when memory does
_LEAST, _MOST, _STEP_BYTES = 2 * 1024, 128 * 1024, 256  # of the smallest heap
_ROUND_TRIP_S = 0.02
_SECONDS = 1
_MOST_AT_ONCE = 20_000
_RUN_S = 300
_TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)
_LOADED = "\nimport sys\nprint('loaded', ' '.join(sys.modules))\n"


@dataclass(frozen=True)
class Program:
    """A client and a program of `device/` in `folder`, as .mpy, for MicroPython of `bits`."""

    client: Client
    folder: Path
    bits: int

    def done(
        self, *args: object, heap_bytes: int = 0, tool: Sequence[str] = (), timeout: float = _RUN_S
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end, below `tool`.  Raises subprocess.TimeoutExpired."""
        heap = ["-X", f"heapsize={heap_bytes or self.client.heap_bytes}"]
        words = ["-m", "main", self.client.own[0], *map(str, args)]
        return subprocess.run(
            [*tool, *choose(bits=self.bits).command, *heap, *words],
            env={"PATH": os.environ["PATH"], "MICROPYPATH": f"{self.folder}:.frozen"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def run(self, *args: object, **how) -> str:
        """The same -> what it prints.  Raises BenchError."""
        try:
            done = self.done(*args, **how)
        except subprocess.TimeoutExpired as late:
            raise BenchError(f"{self.client.title}: not done in {late.timeout} s") from None
        if done.returncode:
            text = [line for line in done.stderr.splitlines() if line and line[:2] != "=="]
            raise BenchError(f"{self.client.title}: {text[-1] if text else 'no output'}")
        return done.stdout


@contextmanager
def compiled(
    client: Client, peers: Path, program: str, bits: int = 64, more: str = ""
) -> Iterator[Program]:
    """The client with the program of `device/`, and `more` behind its source."""
    with tempfile.TemporaryDirectory() as name:
        folder = client.compile(peers, Path(name) / "modules")
        source = Path(name) / f"{program}.py"
        source.write_text((DEVICE / source.name).read_text() + more)
        compile_mpy(source, folder / "main.mpy")
        yield Program(client, folder, bits)


def measure(work: Work, clients: Sequence[Client], peers: Path, rounds: int = 1) -> Rows:
    """The median of `rounds`, all clients in each."""
    samples: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for client in clients:
            for row, figure in work(client, peers).items():
                samples.setdefault(row, {}).setdefault(client.title, []).append(figure)
    return {
        row: {title: statistics.median(figures) for title, figures in found.items()}
        for row, found in samples.items()
    }


def heap(client: Client, peers: Path) -> dict[str, float]:
    """Bytes that one operation allocates, 32 bits, without the collector."""
    with compiled(client, peers, "work", 32) as program, Answerer(True) as far_end:
        text = program.run(far_end.port, _HEAP_COUNT, "heap", heap_bytes=_UNCOLLECTED_BYTES)
    lines = [line.split("\t") for line in text.splitlines()[1:]]
    return {row: round(float(figure)) for row, figure in lines}


def bytecode(client: Client, peers: Path) -> dict[str, float]:
    """Bytes of .mpy of all modules that are loaded to publish and to receive at QoS 1."""
    with (
        compiled(client, peers, "there_and_back", more=_LOADED) as program,
        Answerer(True) as far_end,
    ):
        loaded = program.run(far_end.port, 8).partition("loaded ")[2].split()
        files = [
            program.folder / f"{name.replace('.', '/')}{end}.mpy"
            for name in loaded
            for end in ("", "/__init__")
            if name not in (*client.adapters, "__main__", "main")
        ]
        return {"bytecode": sum(one.stat().st_size for one in files if one.exists())}


def size(client: Client, peers: Path) -> dict[str, float]:
    """Its bytecode, and the smallest heap in which 200 QoS 1 messages go there and back, 32 bits:
    loaded from .mpy, the program too, and run in place from ROMFS."""
    with compiled(client, peers, "there_and_back", 32) as program, Answerer(True) as far_end:

        def is_enough(heap_bytes: int, *more: object) -> bool:
            how = {"heap_bytes": heap_bytes, "timeout": _BACK_S}
            try:
                return program.run(far_end.port, _BACK_COUNT, *more, **how) == "done\n"
            except BenchError:
                return False

        found = _bisect(is_enough)
        main = program.folder / "main.mpy"
        main.rename(main.with_name("program.mpy"))
        image = program.folder / "image.romfs"
        image.write_bytes(make_romfs(program.folder))
        compile_mpy(DEVICE / "from_rom.py", main)
        return {
            **bytecode(client, peers),
            "smallest heap": found,
            "from ROMFS": _bisect(lambda heap_bytes: is_enough(heap_bytes, image)),
        }


def _bisect(is_enough: Callable[[int], bool]) -> int:
    # -> bytes of heap, to within 256.
    low, high = _LEAST, _MOST
    if not is_enough(high):
        raise BenchError(f"the program does not run in {_MOST} bytes of heap")
    while high - low > _STEP_BYTES:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def instructions(client: Client, peers: Path) -> dict[str, float]:
    """Instructions of one message and its answers, 64 bits, by callgrind."""
    with compiled(client, peers, "work") as program, Answerer(True) as far_end:
        callgrind = ["valgrind", "--tool=callgrind", "--dump-before=erf"]
        callgrind += ["--combine-dumps=yes", "--callgrind-out-file=counts"]
        text = program.run(far_end.port, client.count, "count", tool=callgrind)
        counts = (program.folder / "counts").read_text()
    totals = [int(total) for total in _TOTALS.findall(counts)]
    work = dict(zip([line.split("\t")[0] for line in text.splitlines()], totals[1::2]))
    nothing = work.pop("nothing")
    return {row: round((total - nothing) / client.count) for row, total in work.items()}


@contextmanager
def _over_the_link(client: Client, peers: Path) -> Iterator[Callable[..., float]]:
    # `rates(what, …)` -> its figure, over a link with a round trip of 20 ms.
    link = Answerer(round_trip_s=_ROUND_TRIP_S)
    with compiled(client, peers, "rates") as program, link as far_end:
        yield lambda *words: float(program.run(far_end.port, *words))


def rates(client: Client, peers: Path) -> dict[str, float]:
    found = {}
    with _over_the_link(client, peers) as rate:
        for window in WINDOWS if client.has_window else WINDOWS[:1]:
            count = round(window * _SECONDS / _ROUND_TRIP_S)
            found[f"window {window}"] = rate("rate", count, window, 1)
        found["window 1, with Nagle"] = rate("rate", round(_SECONDS / _ROUND_TRIP_S), 1, 0)
    return found


def awake(client: Client, peers: Path) -> dict[str, float]:
    with _over_the_link(client, peers) as rate:
        return {"awake": rate("awake")}


def receiving(client: Client, peers: Path) -> dict[str, float]:
    found = {}
    count = min(_MOST_AT_ONCE, 20 * client.count)
    with compiled(client, peers, "rates") as program:
        for qos in (0, 1):
            with Answerer(answer=giving(count, qos)) as far_end:
                found[f"QoS {qos}"] = float(program.run(far_end.port, "receiving", count))
    return found
