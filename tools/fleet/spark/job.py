"""The batch job: a folder of captures in, a folder of tables out.

One job of Spark does all of it, each task writing the tables it makes (module `tables`).
Nothing is kept in between and no table is read again.  Between two steps Spark shuffles by
bucket; what is so small that one bucket holds it goes through all steps in one task.
"""

import gc
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from .. import places, tables
from ..capture import files
from ..capture.payloads import COUNTERS
from ..report import MERGED, causes, devices
from . import pack, steps

_BUCKET_BYTES, _MOST_BUCKETS = 32 << 20, 4096
_SMALL_BYTES = 4 << 20  # all in one task
_OPENERS = 32  # files are opened side by side, which stores need
_SETTLED_S = 60  # a file that nobody wrote to for so long is complete
_LOOK_S = 0.25  # between two looks at how far the tasks are


@dataclass
class Options:
    """How to audit.  `whole_files`: files hold whole connections; `exempt`: filters; `counters`:
    names of JSON fields that count readings.
    """

    ports: str = "1883"
    whole_files: bool = False
    exempt: tuple = ()
    counters: tuple = COUNTERS
    buckets: int | None = None
    range_bytes: int = 64 << 20


@dataclass
class Range:
    """The files of `sources`; of a single one the bytes from `begin` to `until`.

    `known` is what stands before `begin`, as `files.ranges` has it.  Where `is_growing`, somebody
    wrote to one of them just now: it may end in the middle of a record.
    """

    sources: list = field(default_factory=list)
    begin: int = 0
    until: int | None = None
    known: tuple = ()
    first_ts: int = 0
    is_growing: bool = False


def run(context, folder, out, options, progress=lambda done, total: None, report=None):
    """Audit the captures under `folder` into the tables under `out` -> `outcome.Result`.

    `progress(done, total)` is called with tasks done and known now and then; `report` is that of
    `tables.publish`.
    """
    tables.discard(out)
    found = files.listed(folder)
    parts = ranges(found, not options.whole_files, options.range_bytes)
    settled_s = time.time() - _SETTLED_S
    for part in parts:
        part.is_growing = any(one.changed_s > settled_s for one in part.sources)
    buckets = options.buckets or count_buckets(found, context.defaultParallelism)
    later = count_later_buckets(buckets, context.defaultParallelism)
    rows = context.parallelize(parts, 1 if buckets == 1 else len(parts))
    try:
        with _watched(context, progress):
            for step, number in _plan(options, str(out), buckets, later):
                rows = rows.mapPartitions(partial(_task, step))
                # Where all are in one already, Spark makes one task of all steps.
                if number and max(number, rows.getNumPartitions()) > 1:
                    rows = rows.partitionBy(number, int)
            told = rows.collect()
        return tables.publish(out, _driver_rows(told, str(out)), report)
    except BaseException:
        tables.discard(out)
        raise


def _plan(options, out, buckets, later):
    # [(step, number of buckets that its rows go to)]
    ports = {int(port) for port in options.ports.split(",")}
    plan = [(lambda parts: steps.read(parts, ports, buckets, options), buckets)]
    if not options.whole_files:
        plan.append((lambda pairs: steps.decode(pairs, buckets, options.counters), buckets))
    plan.append((lambda pairs: steps.judge(pairs, later, out), later))
    return [*plan, (lambda pairs: steps.relate(pairs, options.exempt, out), 0)]


def _task(step, found):
    # Spark's worker collects garbage after each task.  It need not look at modules again, which
    # are tens of thousands of objects.  During a task there is next to no garbage, but the
    # collector would look at all connections so far.
    gc.freeze()
    gc.disable()
    return step(found)


def _driver_rows(pairs, out):
    # What the tasks wrote, and what is made of all of them: the devices, the report's facts.
    told = [json.loads(text) for text in pack.named(pairs, steps.WRITTEN)["told"].to_pylist()]
    outbox = tables.Outbox(out)
    partials = pack.of_kind(pairs, "devices")
    if partials:
        outbox.add("devices", devices.merge(partials))
    losses = pack.named(pairs, "losses")
    if losses:
        # What brought them about shows only when all tables are there.
        fresh = places.place(out) / tables.FRESH
        others = (tables.read(fresh, name) for name in ("connections", "findings"))
        for name, table in causes.explained(losses, *others).items():
            outbox.add(name, table)
    found = {name: pack.of_kind(pairs, name) for name in MERGED}
    merged = {name: MERGED[name](some) for name, some in found.items() if some}
    return [*told, outbox.finish() | {"facts": merged}]


def ranges(sources, is_cut, range_bytes):
    """What each task reads of these files; `is_cut`: large ones in several `Range`s.

    Opens every file whose name does not tell what it is, and with `is_cut` every capture.
    """
    with ThreadPoolExecutor(_OPENERS) as pool:
        found = list(pool.map(lambda one: _ranges(one, is_cut, range_bytes), sources))
    unread = [one for one in found if not isinstance(one, list)]
    parts = [part for some in found if isinstance(some, list) for part in some]
    return [Range(unread), *parts] if unread else parts or [Range()]


def _ranges(source, is_cut, range_bytes):
    # -> for what cannot be read, the source that says why.
    source = files.checked(source)
    if source.problem is not None:
        return source
    if not is_cut or files.is_json(source):
        return [Range([source])]
    first = files.first_ts(source.path) or 0
    try:
        cuts = files.ranges(source.path, range_bytes)
    except OSError:  # reading it later says why
        cuts = [(0, None, ())]
    return [Range([source], begin, end, known, first) for begin, end, known in cuts]


def count_buckets(sources, cores):
    """How many parts the traffic of these files is judged in: as many for each core."""
    size = sum(source.size_bytes for source in sources)
    if size < _SMALL_BYTES:
        return 1
    rounds = -(-size // (_BUCKET_BYTES * cores))
    return int(cores * max(1, min(_MOST_BUCKETS // cores, rounds)))


def count_later_buckets(buckets, cores):
    """How many the steps behind the judging have: half as many, the same number for each core.

    Messages take half the memory that packets do, and a task costs as much as 20,000 of them.
    """
    return min(buckets, cores * -(-buckets // (2 * cores)))


@contextmanager
def _watched(context, progress):
    # Tells `progress` how many tasks are done, from a thread of its own.
    ending = threading.Event()
    tracker, group = context.statusTracker(), "audit-%d" % id(ending)
    context.setJobGroup(group, "fleet audit")

    def watch():
        while not ending.wait(_LOOK_S):
            stages = [
                tracker.getStageInfo(stage)
                for number in tracker.getJobIdsForGroup(group)
                for stage in getattr(tracker.getJobInfo(number), "stageIds", ())
            ]
            known = [stage for stage in stages if stage]
            done = sum(stage.numCompletedTasks for stage in known)
            progress(done, sum(stage.numTasks for stage in known))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()
