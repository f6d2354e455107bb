"""The asyncio front beside the waiting client and the bare link, on 64-bit MicroPython.

The garbage of an idle second is that of the client and of asyncio, which alone makes as
much as the column `bare` says.
"""

from collections.abc import Iterator

from .answerer import Answerer
from .figures import Figure
from .link import DelayedLink
from .subjects import Bench

TITLE = "asyncio, 64 bits"
PEER = "waiting"

_COUNT = 40_000
_ROUND_TRIP_S = 0.02
_WINDOW = 100
_LEAST_OF_BARE = 0.9
_IDLE_S = 10


def measure(bench: Bench) -> Iterator[Figure]:
    """Messages a second, and bytes of garbage in an idle second."""
    with Answerer() as far_end:
        aio, waiting = map(float, _run(bench, "receive", far_end.port, _COUNT))
        yield Figure("receive QoS 0/s", aio, 10_000, peer=waiting, is_more_better=True)
        yield Figure("  % of waiting", 100 * aio / waiting, is_more_better=True)
        count = round(_WINDOW * 2 / _ROUND_TRIP_S)
        with DelayedLink(far_end.port, _ROUND_TRIP_S) as link:
            aio = float(_run(bench, "publish", link.port, count, _WINDOW)[0])
        with DelayedLink(far_end.port, _ROUND_TRIP_S) as link:
            bare = float(bench.bare.run(bench.large, "throughput", link.port, count, _WINDOW))
        title = f"QoS 1/s, window {_WINDOW}, {_ROUND_TRIP_S * 1000:.0f} ms"
        yield Figure(title, aio, _LEAST_OF_BARE * bare, bare=bare, is_more_better=True)
        garbage, bare = map(int, _run(bench, "idle", far_end.port, _IDLE_S))
        yield Figure("garbage of an idle second", garbage / _IDLE_S, bare=bare / _IDLE_S)


def _run(bench: Bench, *args: object) -> list[str]:
    return bench.ours.run(bench.large, "tasks", *args).split()
