"""The batch job: a folder of captures in, a folder of tables out.

One job of Spark does all of it: read, decode, judge, relate, each task writing the tables
it makes (module `tables`).  Nothing is kept in between and no table is read again.
"""

import shutil
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .. import places, schemas
from ..capture import files
from ..places import place
from . import tables, transforms

_BUCKET_BYTES, _MOST_BUCKETS = 32 << 20, 4096
_LOOK_S = 0.25  # between two looks at how far the tasks are
_SHELF, _YOUNG_S = "fleet-shelf-", 60  # one that was just made is not held yet
SHELF = "spark.fleet.shelf"  # setting: a folder that all machines see


@dataclass
class Options:
    """How to audit.  `whole_files`: files hold whole connections; `exempt`: filters."""

    ports: str = "1883"
    whole_files: bool = False
    exempt: tuple = ()
    buckets: int | None = None
    range_bytes: int = 64 << 20


def run(session, folder, out, options, progress=lambda done, total: None, report=None):
    """Audit the captures under `folder` into the tables under `out` -> `outcome.Result`.

    `progress(done, total)` is called with tasks done and known now and then; `report` is that of
    `tables.publish`.
    """
    with shelf(session) as place:
        events, buckets = read(session, folder, options, place)
        sink = tables.Sink(str(out))
        return audit(events, buckets, options.exempt, sink, place, progress, report)


def read(session, folder, options, shelf=None):
    """-> (packed events by client, buckets)."""
    cores = session.sparkContext.defaultParallelism
    found = files.listed(folder)
    buckets = options.buckets or count_buckets(found, cores)
    ports = {int(port) for port in options.ports.split(",")}
    mode = "events" if options.whole_files else "segments"
    parts = transforms.plan(session, found, not options.whole_files, options.range_bytes)
    packed = transforms.read(session, parts, mode, ports, buckets, shelf)
    if options.whole_files:
        return packed, buckets
    return transforms.decode(packed, buckets, shelf=shelf), buckets


def count_buckets(sources, cores):
    """How many parts the traffic of these files is judged in: as many for each core."""
    size = sum(source.size_bytes for source in sources)
    rounds = -(-size // (_BUCKET_BYTES * cores))
    return int(cores * max(1, min(_MOST_BUCKETS // cores, rounds)))


def count_later_buckets(buckets, cores):
    """How many the steps behind the judging have: half as many, the same number for each core.

    Messages take half the memory that packets do, and a task costs as much as 20,000 of them.
    """
    return min(buckets, cores * -(-buckets // (2 * cores)))


def audit(
    events, buckets, exempt, sink, shelf=None, progress=lambda done, total: None, report=None
):
    """Packed events -> the tables of `sink` -> `outcome.Result`."""
    tables.discard(sink)
    context = events.sparkSession.sparkContext
    fewer = count_later_buckets(buckets, context.defaultParallelism)
    judged = transforms.judge(events, buckets, fewer, sink, shelf)
    related = transforms.relate(judged, fewer, exempt, sink, shelf)
    summed = transforms.sum_up(related, fewer, sink, shelf)
    with _watched(context, progress):
        told = summed.toArrow()
    return tables.publish(sink, told, report=report)


def discard(out):
    """Delete what an audit that failed has written and not shown."""
    tables.discard(tables.Sink(str(out)))


def load(session, out, name):
    """A written table as a DataFrame, `site` and `day` as columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(schemas.TABLES[name], prefer_timestamp_ntz=False)
    if name in tables.DAY_COLUMNS:
        schema = schema.add("day", "date")
    return session.read.schema(schema).parquet(places.uri(place(out) / name))


def register(session, out):
    """Each written table as a view of its name, for `session.sql`."""
    for name in schemas.TABLES:
        load(session, out, name).createOrReplaceTempView(name)


@contextmanager
def shelf(session):
    """A folder for what goes from task to task, where all tasks see it; else None.

    On one computer it is a temporary one; on a cluster the setting `spark.fleet.shelf`
    can name a fast file system that all machines share.  It is deleted in the end.
    """
    named = session.conf.get(SHELF, None)
    if not named and not session.sparkContext.master.startswith("local["):
        yield None
        return
    if not named:
        sweep(Path(tempfile.gettempdir()))
    folder = tempfile.mkdtemp(prefix=_SHELF, dir=named)
    try:
        with places.held(Path(folder)):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(folder):
    """Delete the shelves in a local folder that were left there by audits that were killed."""
    for path in folder.glob(_SHELF + "*"):
        with suppress(OSError):  # held by a running audit, deleted, of another user
            if time.time() - path.stat().st_mtime > _YOUNG_S:
                with places.held(path):
                    shutil.rmtree(path)


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
