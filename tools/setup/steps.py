"""The steps of set-up in their order; a step that has nothing to do says nothing.

Two set-ups at the same time would spoil each other's downloads, so the second
one waits for the first.
"""

import fcntl
import time
from pathlib import Path

from tools import micropython

from . import environment, system
from .errors import SetupError

__all__ = ["SetupError", "run_all"]

_LOCK = Path(__file__).parents[2] / ".tools" / "setup.lock"


def run_all() -> None:
    """System packages, virtual environment, MicroPython.  Raises SetupError."""
    began = time.monotonic()
    _LOCK.parent.mkdir(exist_ok=True)
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        did = [system.install_missing(), environment.install(), _fetch_micropython()]
    if any(did):
        print(f"setup: ready after {time.monotonic() - began:.0f} s", flush=True)


def _fetch_micropython() -> bool:
    try:
        return micropython.fetch_missing()
    except micropython.MicroPythonError as error:
        raise SetupError(str(error)) from error
