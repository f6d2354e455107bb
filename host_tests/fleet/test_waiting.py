"""A subscriber that takes plain values of chance slowly; `traces/waiting.txt` has the rest."""

import random

import pytest

from host_tests.fleet.captures import rows
from host_tests.fleet.traces import Trace


def _plain(seed, count):
    rng = random.Random(seed)
    return [f'"{rng.choice((30, 31, 32))}"' for _ in range(count)]


def _losses(steps):
    trace = Trace()
    for step in steps:
        trace.play(step)
    tables = trace.capture.audit()
    assert not tables["violations"].num_rows
    return rows(tables["losses"], "kind", "sure")


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("stays", [True, False])
def test_what_came_of_a_queue_of_plain_values_is_its_beginning(seed, stays):
    """The client still takes them when the capture ends, or hangs behind the last ones."""
    values = _plain(seed, 60)
    steps = [
        *("pub connects keepalive=600", "sub connects kept", "sub subscribes #:1"),
        *("sub > DISCONNECT", "(60 s)", f"pub >> {', '.join(values)} packets every 0.4 s"),
        *("(60 s)", "sub connects kept present"),
        f"sub << {', '.join(values[:25])} packets every 0.15 s",
    ]
    if not stays:
        steps.append(f"sub < PUBLISH 26 {values[25]}, PUBLISH 27 {values[26]}")
        steps += ["(20 s)", "sub connects", "(20 s)", "sub > PINGREQ"]
    assert set(_losses(steps)) <= {("unexplained", "not_knowable")}


@pytest.mark.parametrize("seed", range(6))
def test_plain_value_lost_from_a_lively_stream_is_found_in_its_place(seed):
    """The subscriber has always something to answer, and nothing waits."""
    steps = ["pub connects", "sub connects", "sub subscribes #:1"]
    for number, value in enumerate(['"30"', *_plain(seed, 20), '"33"', *_plain(seed + 9, 20)], 1):
        steps.append(f"pub >> {value} packets every 0.1 s")
        if number != 22:
            steps.append(f"sub << {number} {value} packets every 0.1 s")
    steps += ["(0.7 s)", "sub > PINGREQ"]
    assert _losses(steps) == [("not_delivered", "proved")]
