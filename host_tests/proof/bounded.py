"""A pytest plugin for `proof mutants`: the shortest tests first, and none without end.

A mutant that never ends fails the test it is in after a few seconds of processor time,
which do not depend on what else the computer does.
"""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import umqtt31
from umqtt31 import queueing

_MOST_S = 20  # several times what the longest of these tests takes
_STATS = Path("mutmut-stats.json")  # mutmut runs the tests in the folder where it keeps this


class Endless(BaseException):
    """Not an Exception: nothing that runs may take it for an error of its own."""


def pytest_configure() -> None:
    """Make the class anew: extend() ran before the mutant was chosen."""
    queueing.MQTTClient = queueing.extend(umqtt31.MQTTClient)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by what each test took before the first mutant."""
    if _STATS.exists():
        seconds = json.loads(_STATS.read_text())["duration_by_test"]
        items.sort(key=lambda item: seconds.get(item.nodeid, 0))


@pytest.hookimpl(wrapper=True)
def _bounded() -> Iterator[None]:
    signal.signal(signal.SIGVTALRM, _stop)
    # Again and again: what cleans up may not end either.
    signal.setitimer(signal.ITIMER_VIRTUAL, _MOST_S, 0.5)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


# A test's fixtures may be without end, too.
pytest_runtest_setup = pytest_runtest_call = _bounded


def _stop(*_: object) -> None:
    raise Endless(f"more than {_MOST_S} s of processor time")
