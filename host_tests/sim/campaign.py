"""Campaigns: runs many schedules on all cores, counts the distinct ones, and makes one that
breaks a promise small.

A job runs in any process: the single faults of one script, some pairs of one, or a
range of random seeds.  What it finds is the same wherever and whenever it runs.
"""

import hashlib
import multiprocessing
import time
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from . import explore, script
from .faults import Fault, text
from .rules import Violation

_RANDOM_PER_JOB = 500
_MOST_FAILURES = 20
_MOST_SHRINKING_RUNS = 5000
# In the default run, of the first of two faults at one place; `sim run` takes all.
_FIRST_KINDS = 3
_SEEDS = 3_000
_PARTS = 8  # of the pairs of one script


@dataclass
class Failure:
    """A schedule that broke a promise, and which."""

    script: script.Script
    faults: tuple[Fault, ...]
    rule: str
    message: str

    @property
    def command(self):
        return f'python -m host_tests sim replay "{self.script}" "{text(self.faults)}"'


@dataclass
class Result:
    """What a job or a campaign found; `schedules` are digests of what really struck."""

    runs: int = 0
    schedules: set[bytes] = field(default_factory=set)
    failures: list[Failure] = field(default_factory=list)
    is_exhaustive: bool = False

    def add(self, other):
        self.runs += other.runs
        self.schedules |= other.schedules
        self.failures += other.failures[: _MOST_FAILURES - len(self.failures)]


class Job(NamedTuple):
    """`kind`: "single" faults, "pair"s, "reset"s or cuts of the "flash" of a script, or
    "random" schedules.  `part` of `parts`: every so-manieth first fault only."""

    kind: str
    script: str = ""
    kinds: int = 0  # of the first fault at one place, which take turns; 0: all
    part: int = 0
    parts: int = 1
    seed: int = 0  # the first
    seeds: int = 0


def exhaustive_jobs(kinds=0):
    """Every single fault of the small scripts, every reset over the journal, every pair of
    places of the smallest scripts; of these, and of the scripts with many places, `kinds` kinds of
    the first fault (0: all)."""
    jobs = [
        Job("pair", str(item), kinds, part, _PARTS)
        for item in explore.pair_scripts()
        for part in range(_PARTS)
    ]
    jobs += [Job("flash", str(item)) for item in explore.flash_scripts()]
    jobs += [Job("reset", str(item)) for item in explore.reset_scripts()]
    jobs += [Job("single", str(item)) for item in explore.session_scripts()]
    jobs += [Job("single", str(item)) for item in explore.level_5_scripts()]
    # Of three, as every other one would always be of the same kinds.
    some = kinds and 3
    jobs += [Job("single", str(item), some, 0, 3) for item in explore.hard_scripts()]
    return jobs + [Job("single", str(item)) for item in explore.single_scripts()]


def random_jobs(first_seed, seeds):
    """Random schedules of the seeds from `first_seed` on."""
    end = first_seed + seeds
    for start in range(first_seed, end, _RANDOM_PER_JOB):
        yield Job("random", seed=start, seeds=min(_RANDOM_PER_JOB, end - start))


def default_jobs():
    """What `make test` tries of all schedules, in a fixed time."""
    return exhaustive_jobs(_FIRST_KINDS) + list(random_jobs(0, _SEEDS))


def run_job(job, until=()):
    """Run one job to its end, or to the first failure of one of the rules `until`."""
    result = Result()
    if job.kind == "random":
        for seed in range(job.seed, job.seed + job.seeds):
            _try(result, *explore.random_schedule(seed))
        return result
    result.is_exhaustive = True
    item = script.parse(job.script)
    world = _try(result, item, ())
    if world is None:
        return result
    kinds = explore.first_faults(world.places(), job.kinds)
    is_any = job.kind in ("single", "pair")
    own = (one for one in kinds if is_any or job.kind in (one.kind, one.place))
    for first in islice(own, job.part, None, job.parts):
        struck = _try(result, item, (first,))
        if until and any(failure.rule in until for failure in result.failures):
            break
        if job.kind == "pair" and struck is not None:
            places = struck.places()
            for second in explore.second_faults(first, struck.places_at_first, places):
                _try(result, item, (first, second))
    return result


def _try(result, item, faults):
    failure, world = attempt(item, faults)
    result.runs += 1
    if faults and world.struck:
        words = f"{_name(item)}|{sorted(world.struck)}"
        result.schedules.add(hashlib.blake2b(words.encode(), digest_size=8).digest())
    if failure is None:
        return world
    if len(result.failures) < _MOST_FAILURES:
        result.failures.append(failure)
    return None


@lru_cache(maxsize=4)
def _name(item):
    return str(item)


def attempt(item, faults, is_traced=False):
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


def shrink(failure):
    """The smallest failure found that breaks the same rule; deterministic.

    Greedy: fewer faults, fewer messages, default settings, earlier places; whatever still fails
    is kept, until nothing more can be taken away.
    """
    while True:
        tries = islice(_smaller(failure.script, failure.faults), _MOST_SHRINKING_RUNS)
        found = (attempt(*schedule)[0] for schedule in tries)
        smaller = next((one for one in found if one and one.rule == failure.rule), None)
        if smaller is None:
            return failure
        failure = smaller


def _smaller(item, faults):
    for k in range(len(faults)):
        yield item, faults[:k] + faults[k + 1 :]
    for smaller in _smaller_scripts(item):
        yield smaller, faults
        if len(faults) == 1:  # its place moves when there is less before it
            for at in range(faults[0].at):
                yield smaller, (faults[0]._replace(at=at),)
    for k, fault in enumerate(faults):
        for at in {0, fault.at // 2, fault.at - 1} & {*range(fault.at)}:
            yield item, (*faults[:k], fault._replace(at=at), *faults[k + 1 :])


def _smaller_scripts(item):
    for one in fields(script.Script):
        value = getattr(item, one.name)
        smaller = [one.default]
        if one.name in ("up", "down"):
            half = value[: len(value) // 2]
            smaller = [half, *(value[:k] + value[k + 1 :] for k in range(len(value)))]
        elif one.name == "window":
            smaller = [max(1, value - 1)]
        for other in smaller:
            if other != value:
                yield replace(item, **{one.name: other})


def run_jobs(jobs, seconds=None):
    """Run jobs on all cores until they or the `seconds` are over; the results come as they are
    ready."""
    deadline = None if seconds is None else time.monotonic() + seconds
    with multiprocessing.get_context("spawn").Pool() as pool:
        for result in pool.imap_unordered(run_job, jobs):
            yield result
            if deadline is not None and time.monotonic() >= deadline:
                return
