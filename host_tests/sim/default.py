"""The default run: what `make test` tries of all schedules, in a fixed time."""

from .campaign import Job, exhaustive_jobs, random_jobs

LEAST_SCHEDULES = 200_000
_FIRST_KINDS = 2  # of the first of two faults at one place; `python -m host_tests sim` takes all
_SEEDS = 3_000


def jobs() -> list[Job]:
    """Every single fault, every pair of places, some random schedules."""
    return exhaustive_jobs(_FIRST_KINDS) + list(random_jobs(0, _SEEDS))
