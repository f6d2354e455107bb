"""Campaigns: runs many schedules on all cores and counts the distinct ones.

A job is a few words of text and runs in any process: the single faults of one script,
the pairs of one, or a range of random seeds.  What a job finds is the same wherever
and whenever it runs.
"""

import hashlib
import multiprocessing
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from . import explore, script
from .faults import Fault, text
from .rules import Violation

RANDOM_PER_JOB = 500
_MOST_FAILURES = 20


@dataclass
class Failure:
    """A schedule that broke a promise, and which."""

    script: script.Script
    faults: tuple[Fault, ...]
    rule: str
    message: str

    @property
    def command(self) -> str:
        """The command that runs it again, with its trace."""
        return f'python -m tools sim replay "{self.script}" "{text(self.faults)}"'


@dataclass
class Result:
    """What a job or a campaign found; `schedules` are digests of what really struck."""

    runs: int = 0
    schedules: set[bytes] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: "Result") -> None:
        self.runs += other.runs
        self.schedules |= other.schedules
        self.failures += other.failures[: _MOST_FAILURES - len(self.failures)]


def exhaustive_jobs(kinds: int | None = None) -> list[str]:
    """Every single fault of the small scripts, every reset over the journal, every pair
    of places of the smallest scripts with `kinds` kinds of the first fault (None: all)."""
    jobs = [f"pair{kinds or ''} {item}" for item in explore.pair_scripts()]
    jobs += [f"flash {item}" for item in explore.flash_scripts()]
    jobs += [f"reset {item}" for item in explore.reset_scripts()]
    return jobs + [f"single {item}" for item in explore.single_scripts()]


def random_jobs(first_seed: int, seeds: int) -> Iterator[str]:
    """Random schedules of the seeds from `first_seed` on."""
    for start in range(first_seed, first_seed + seeds, RANDOM_PER_JOB):
        yield f"random {start} {min(RANDOM_PER_JOB, first_seed + seeds - start)}"


def run_job(job: str) -> Result:
    """Run one job to its end."""
    kind, _, rest = job.partition(" ")
    result = Result()
    if kind == "random":
        start, count = map(int, rest.split())
        for seed in range(start, start + count):
            _try(result, *explore.random_schedule(seed))
        return result
    item = script.parse(rest)
    world = _try(result, item, ())
    if world is None:
        return result
    is_pair = kind.startswith("pair")
    kinds = int(kind[4:] or 0) or None if is_pair else None
    for first in explore.first_faults(world.places(), kinds):
        if kind in ("reset", "flash") and kind not in (first.kind, first.place):
            continue
        struck = _try(result, item, (first,))
        if is_pair and struck is not None:
            places = struck.places()
            for second in explore.second_faults(first, struck.places_at_first, places):
                _try(result, item, (first, second))
    return result


def _try(result: Result, item: script.Script, faults: tuple[Fault, ...]) -> script.World | None:
    failure, world = attempt(item, faults)
    result.runs += 1
    if faults and world.struck:
        words = f"{item}|{text(tuple(sorted(world.struck)))}"
        result.schedules.add(hashlib.blake2b(words.encode(), digest_size=8).digest())
    if failure is None:
        return world
    if len(result.failures) < _MOST_FAILURES:
        result.failures.append(failure)
    return None


def attempt(
    item: script.Script, faults: tuple[Fault, ...], is_traced: bool = False
) -> tuple[Failure | None, script.World]:
    """Run one schedule -> what it broke, if anything, and the world afterwards."""
    world = script.world_of(item, faults, is_traced)
    try:
        world.run(script.Program(item, world))
    except Violation as violation:
        return Failure(item, faults, violation.rule, str(violation)), world
    except Exception as error:
        # Only MQTTError may come out of a client, and the program catches those.
        name = type(error).__name__
        return Failure(item, faults, name, f"{name} reached the program: {error}"), world
    return None, world


def run_jobs(
    jobs: Iterable[str], cores: int | None = None, seconds: float | None = None
) -> Iterator[Result]:
    """Run jobs on `cores` (all, if None) until they or the `seconds` are over; the
    results come as they are ready."""
    deadline = None if seconds is None else time.monotonic() + seconds
    with multiprocessing.get_context("fork").Pool(cores) as pool:
        for result in pool.imap_unordered(run_job, jobs):
            yield result
            if deadline is not None and time.monotonic() >= deadline:
                return

