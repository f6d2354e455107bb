"""The steps of set-up in their order; a step that has nothing to do says nothing.

A job names what somebody wants to do, and set-up is as large as the job.  Two set-ups
at the same time would spoil each other's downloads, so the second one waits for the
first.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO

from tools.project import ROOT

from . import classes, environment, erlang, interpreters, nodejs, source, system
from .errors import SetupError

__all__ = ["JOBS", "SetupError", "run_all", "run_brokers"]

_LOCK = ROOT / ".tools" / "setup.lock"

# {job: groups of pyproject.toml}; "all" has them all, and what else tests need.
JOBS: dict[str, tuple[str, ...]] = {
    "boards": ("tools", "boards"),
    "fleet": ("tools", "fleet"),
    "all": (),
}


def run_all(job: str = "all") -> None:
    """All steps of `job`.  Raises SetupError."""
    _run(_steps(job))


def run_brokers() -> None:
    """The step that only the broker tests in full length need.  Raises SetupError."""
    _run((erlang.install,))


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


def _steps(job: str) -> Iterator[Callable[[], bool]]:
    if job not in JOBS:
        raise SetupError(f"no job {job!r}; there are {', '.join(JOBS)}")
    yield lambda: system.install_missing(system.needs_of(job))
    yield lambda: environment.install(JOBS[job])
    if job in ("fleet", "all"):
        yield classes.install
    if job == "all":
        yield from (environment.install_stubs, interpreters.install)
        yield from (source.install, nodejs.install)


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
