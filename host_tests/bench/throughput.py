"""Messages a second at QoS 1 over a link with 20 ms round trip, on 64-bit MicroPython.

Nagle's algorithm is off on both ends.  umqtt.simple waits for every answer, so it
has one figure.
"""

from collections.abc import Iterator

from .answerer import Answerer
from .figures import Figure
from .link import DelayedLink
from .subjects import Bench, Subject

TITLE = "Messages per second at QoS 1, 20 ms round trip, 64 bits"

_ROUND_TRIP_S = 0.02
_SECONDS = 2
# Window -> budget in messages a second.
_WINDOWS = {1: None, 4: None, 10: 470, 100: 4000}


def measure(bench: Bench) -> Iterator[Figure]:
    """One figure for each window."""
    for window, budget in _WINDOWS.items():
        simple = bench.simple if window == 1 else None
        yield Figure(
            f"window {window}",
            per_second(bench, bench.ours, window),
            budget,
            peer=per_second(bench, simple, window) if simple else None,
            bare=per_second(bench, bench.bare, window),
            is_more_better=True,
        )


def per_second(bench: Bench, subject: Subject, window: int) -> float:
    """Acknowledged messages a second."""
    count = round(window * _SECONDS / _ROUND_TRIP_S)
    with Answerer() as far_end, DelayedLink(far_end.port, _ROUND_TRIP_S) as link:
        return float(subject.run(bench.large, "throughput", link.port, count, window))
