"""How long tests wait for what comes at once: a busy computer may take its time."""

import time
from collections.abc import Callable

SECONDS = 180


def until(is_true: Callable[[], object]) -> None:
    """Wait for it; fails when it does not come."""
    end = time.monotonic() + SECONDS
    while not is_true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
