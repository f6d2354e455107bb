"""Heap bytes that one operation allocates, on 32-bit MicroPython."""

from collections.abc import Iterator

from .answerer import Answerer
from .figures import Figure
from .subjects import Bench, Subject

TITLE = "Heap bytes allocated per operation, 32 bits"

# Operation -> umqtt.simple 1.8's figure; all have the budget 0.
_PUBLISHED = {
    "publish QoS 0": 64,
    "receive QoS 0": 208,
    "receive QoS 1": 272,
    "ping": 64,
    "idle poll": 0,
}


def measure(bench: Bench) -> Iterator[Figure]:
    """One figure for each operation."""
    peers = _read(bench, bench.simple) if bench.simple else {}
    for operation, ours in _read(bench, bench.ours).items():
        yield Figure(
            operation,
            ours,
            budget=0,
            peer=peers.get(operation),
            published=_PUBLISHED.get(operation),
        )
    for operation, front in _read(bench, bench.front).items():
        yield Figure(f"simple: {operation}", front, peer=peers.get(operation))


def _read(bench: Bench, subject: Subject) -> dict[str, float]:
    with Answerer() as far_end:
        lines = subject.run(bench.small, "heap", far_end.port).splitlines()
    return {operation: float(figure) for operation, figure in (line.split("\t") for line in lines)}
