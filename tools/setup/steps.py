"""The steps of set-up in their order; a step that has nothing to do says nothing.

Two set-ups at the same time would spoil each other's downloads, so the second
one waits for the first.
"""

import fcntl
import time
from pathlib import Path

from . import environment, interpreters, node, system
from .errors import SetupError

__all__ = ["SetupError", "run_all"]

_LOCK = Path(__file__).parents[2] / ".tools" / "setup.lock"


def run_all() -> None:
    """System packages, virtual environment, MicroPython, aedes.  Raises SetupError."""
    began = time.monotonic()
    _LOCK.parent.mkdir(exist_ok=True)
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        steps = (system.install_missing, environment.install, interpreters.install, node.install)
        did = [step() for step in steps]
    if any(did):
        print(f"setup: ready after {time.monotonic() - began:.0f} s", flush=True)
