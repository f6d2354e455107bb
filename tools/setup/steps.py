"""The steps of set-up in their order; a step that has nothing to do says nothing.

A layer names what somebody wants to do, and set-up is as large as that.  Two set-ups
at the same time would spoil each other's downloads, so the second one waits for the
first.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO

from tools.project import ROOT

from . import SetupError, environment, interpreters, nodejs, programs, source, system

__all__ = ["LAYERS", "SetupError", "run_all", "run_brokers"]

_LOCK = ROOT / ".tools" / "setup.lock"

# {layer: groups of pyproject.toml}; "all" has all groups and what else tests need.
LAYERS: dict[str, tuple[str, ...]] = {
    "client": ("tools", "client"),
    "boards": ("tools", "boards"),
    "demo": ("tools", "client", "boards"),
    "fleet": ("tools", "fleet"),
    "docs": ("tools", "docs"),
    "all": (),
}


def run_all(layer: str = "all") -> None:
    """All steps of `layer`.  Raises SetupError."""
    _run(_steps(layer))


def run_brokers() -> None:
    """The step that only the broker tests in full length need.  Raises SetupError."""
    _run((programs.install_others,))


def _run(steps: Iterable[Callable[[], bool]]) -> None:
    began = time.monotonic()
    try:
        _LOCK.parent.mkdir(exist_ok=True)
        with _LOCK.open("w") as lock, _held(lock):
            did = [step() for step in steps]
    except OSError as error:  # an owner of another name, a full disk
        where = f": {error.filename}" if error.filename else ""
        raise SetupError(f"{error.strerror or error}{where}") from error
    if any(did):
        print(f"setup: ready after {time.monotonic() - began:.0f} s", flush=True)


def _steps(layer: str) -> Iterator[Callable[[], bool]]:
    if layer not in LAYERS:
        raise SetupError(f"no layer {layer!r}; there are {', '.join(LAYERS)}")
    yield lambda: system.install_missing(system.needs_of(layer))
    yield lambda: environment.install(LAYERS[layer])
    if layer in ("demo", "all"):
        yield programs.install_mosquitto
    if layer in ("docs", "all"):
        yield nodejs.install
    if layer == "all":
        yield from (environment.install_stubs, interpreters.install, source.install)


@contextlib.contextmanager
def _held(lock: IO[str]) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("setup: waiting for another set-up of this checkout", flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    yield
