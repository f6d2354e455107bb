"""Figures of every client: heap, bytecode, smallest heap, instructions, messages a second.

A measure is {row: {client's title: figure}}; what a client does not do is not in it.
"""

import os
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from host_tests.bench.answerer import Answerer, Giver
from host_tests.bench.figures import BenchError
from host_tests.bench.link import DelayedLink
from host_tests.bench.smallest import bisect
from host_tests.bench.subjects import compile_mpy
from tools.micropython import Interpreter, choose

from .catalogue import BARE, DEVICE, Client

Rows = dict[str, dict[str, float]]

WINDOWS = (1, 10, 100)
_UNCOLLECTED_BYTES = 16 * 1024 * 1024
_HEAP_COUNT = 100
_BACK_COUNT = 200
_BACK_S = 30  # some do not end when memory does
_ROUND_TRIP_S = 0.02
_SECONDS = 1
_MOST_AT_ONCE = 20_000
_RECEIVING = {"QoS 0": 0, "QoS 1": 1}
_RUN_S = 300
_TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)
_LOADED = "\nimport sys\nprint('loaded', ' '.join(sys.modules))\n"


@contextmanager
def compiled(client: Client, peers: Path, program: str, more: str = "") -> Iterator[Path]:
    """A folder with the client, and the program of `device/` as main.mpy."""
    with tempfile.TemporaryDirectory() as name:
        folder = client.compile(peers, Path(name) / "modules")
        source = Path(name) / f"{program}.py"
        source.write_text((DEVICE / source.name).read_text() + more)
        compile_mpy(source, folder / "main.mpy")
        yield folder


def _command(
    interpreter: Interpreter, client: Client, *args: object, heap_bytes: int = 0
) -> list[str]:
    heap = ["-X", f"heapsize={heap_bytes or client.heap_bytes}"]
    return [*interpreter.command, *heap, "-m", "main", client.adapter, *map(str, args)]


def _run(
    client: Client,
    command: Sequence[str],
    folder: Path,
    cwd: Path | None = None,
    timeout: float = _RUN_S,
) -> str:
    try:
        done = subprocess.run(
            command,
            env={"PATH": os.environ["PATH"], "MICROPYPATH": f"{folder}:.frozen"},
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{client.title}: not done in {timeout} s") from None
    if done.returncode:
        text = [line for line in done.stderr.splitlines() if line and not line.startswith("==")]
        raise BenchError(f"{client.title}: {text[-1] if text else 'no output'}")
    return done.stdout


def measure_heap(clients: Sequence[Client], peers: Path) -> Rows:
    """Bytes that one operation allocates, 32 bits, without the collector."""
    rows: Rows = {}
    interpreter = choose(bits=32)
    for client in clients:
        with compiled(client, peers, "work") as folder, Answerer(is_quick=True) as far_end:
            args = (far_end.port, _HEAP_COUNT, "heap")
            command = _command(interpreter, client, *args, heap_bytes=_UNCOLLECTED_BYTES)
            lines = [line.split("\t") for line in _run(client, command, folder).splitlines()]
        for row, figure in lines[1:]:
            rows.setdefault(row, {})[client.title] = round(float(figure))
    return rows


def measure_bytecode(clients: Sequence[Client], peers: Path) -> Rows:
    """Bytes of .mpy of all modules that are loaded to publish and to receive at QoS 1."""
    found = {}
    for client in clients:
        with (
            compiled(client, peers, "there_and_back", _LOADED) as folder,
            Answerer(is_quick=True) as far_end,
        ):
            output = _run(client, _command(choose(bits=64), client, far_end.port, 8), folder)
            loaded = output.partition("loaded ")[2].split()
            files = [
                folder / f"{name.replace('.', '/')}{end}.mpy"
                for name in loaded
                for end in ("", "/__init__")
                if name not in client.adapters and name != "__main__" and name != "main"
            ]
            found[client.title] = float(sum(one.stat().st_size for one in files if one.exists()))
    return {"bytecode": found}


def measure_smallest(clients: Sequence[Client], peers: Path) -> Rows:
    """The smallest heap in which 200 QoS 1 messages go there and back, from .mpy, 32 bits."""
    found = {}
    for client in clients:
        with compiled(client, peers, "there_and_back") as folder:
            found[client.title] = float(bisect(_enough(client, folder)))
    return {"smallest heap": found}


def _enough(client: Client, folder: Path) -> Callable[[int], bool]:
    def is_enough(heap_bytes: int) -> bool:
        with Answerer(is_quick=True) as far_end:
            args = (far_end.port, _BACK_COUNT)
            command = _command(choose(bits=32), client, *args, heap_bytes=heap_bytes)
            try:
                return _run(client, command, folder, timeout=_BACK_S).strip() == "done"
            except BenchError:
                return False

    return is_enough


def measure_instructions(clients: Sequence[Client], peers: Path) -> Rows:
    """Instructions of one message and its answers, 64 bits, by callgrind."""
    rows: Rows = {}
    for client in clients:
        with compiled(client, peers, "work") as folder, Answerer(is_quick=True) as far_end:
            callgrind = ["valgrind", "--tool=callgrind", "--dump-before=erf"]
            callgrind += ["--combine-dumps=yes", "--callgrind-out-file=counts"]
            command = _command(choose(bits=64), client, far_end.port, client.count, "count")
            lines = _run(client, [*callgrind, *command], folder, folder).splitlines()
            totals = [int(text) for text in _TOTALS.findall((folder / "counts").read_text())]
        work = dict(zip([line.split("\t")[0] for line in lines], totals[1::2]))
        nothing = work.pop("nothing")
        for row, total in work.items():
            rows.setdefault(row, {})[client.title] = round((total - nothing) / client.count)
    return rows


def measure_rates(clients: Sequence[Client], peers: Path, rounds: int) -> Rows:
    """Messages a second at QoS 1 over 20 ms: the median of `rounds`, all clients in each."""
    samples: dict[str, dict[str, list[float]]] = {}
    for _ in range(rounds):
        for client in (*clients, BARE):
            with compiled(client, peers, "rate") as folder:
                for window in WINDOWS if client.has_window else WINDOWS[:1]:
                    for no_delay in (1, 0) if window == 1 else (1,):
                        row = f"window {window}{'' if no_delay else ', with Nagle'}"
                        rate = _rate(client, folder, window, no_delay)
                        samples.setdefault(row, {}).setdefault(client.title, []).append(rate)
    return {
        row: {title: statistics.median(rates) for title, rates in found.items()}
        for row, found in sorted(samples.items(), key=lambda one: "Nagle" in one[0])
    }


def _rate(client: Client, folder: Path, window: int, no_delay: int) -> float:
    count = round(window * _SECONDS / _ROUND_TRIP_S)
    with Answerer() as far_end, DelayedLink(far_end.port, _ROUND_TRIP_S) as link:
        command = _command(choose(bits=64), client, link.port, count, window, no_delay)
        return float(_run(client, command, folder))


def measure_awake(clients: Sequence[Client], peers: Path, rounds: int) -> Rows:
    """Milliseconds from the import to the first acknowledgement: the median of `rounds`."""
    samples: dict[str, list[float]] = {}
    for _ in range(rounds):
        for client in clients:
            with (
                compiled(client, peers, "awake") as folder,
                Answerer() as far_end,
                DelayedLink(far_end.port, _ROUND_TRIP_S) as link,
            ):
                text = _run(client, _command(choose(bits=64), client, link.port), folder)
            samples.setdefault(client.title, []).append(float(text))
    return {"awake": {title: statistics.median(found) for title, found in samples.items()}}


def measure_receiving(clients: Sequence[Client], peers: Path, rounds: int) -> Rows:
    """Messages a second that a program is handed: the median of `rounds`."""
    samples: dict[str, dict[str, list[float]]] = {row: {} for row in _RECEIVING}
    for _ in range(rounds):
        for client in (*clients, BARE):
            with compiled(client, peers, "receiving") as folder:
                for row, qos in _RECEIVING.items():
                    rate = _receiving(client, folder, qos)
                    samples[row].setdefault(client.title, []).append(rate)
    return {
        row: {title: statistics.median(rates) for title, rates in found.items()}
        for row, found in samples.items()
    }


def _receiving(client: Client, folder: Path, qos: int) -> float:
    count = min(_MOST_AT_ONCE, 20 * client.count)
    with Answerer(answer=Giver(count, qos).answer) as far_end:
        command = _command(choose(bits=64), client, far_end.port, count)
        return float(_run(client, command, folder))
