"""The batch job: a folder of captures in, a folder of tables out."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import functions as F

from .. import parquet, schemas
from ..capture import files
from . import tasks, transforms

_BUCKET_BYTES = 32 << 20
_WRITERS = 4


@dataclass
class Options:
    """How to audit.  `whole_files`: files hold whole connections; `exempt`: filters."""

    ports: str = "1883"
    whole_files: bool = False
    exempt: tuple = ()
    buckets: int | None = None
    range_bytes: int = 64 << 20


@dataclass
class Result:
    """Rows of each table, and what is a finding: {what: how many}."""

    rows: dict = field(default_factory=dict)
    findings: dict = field(default_factory=dict)


def read(session, folder, options):
    """-> (packed events by client, buckets)."""
    cores = session.sparkContext.defaultParallelism
    buckets = options.buckets or count_buckets(folder, cores)
    reader = session.read.format("mqtt_pcap").option("ports", options.ports)
    reader = reader.option("buckets", buckets).option("rangebytes", options.range_bytes)
    if options.whole_files:
        return reader.option("mode", "events").load(str(folder)), buckets
    segments = reader.option("mode", "segments").load(str(folder))
    return transforms.decode(segments, buckets), buckets


def count_buckets(folder, cores):
    """How many parts the traffic of a folder is judged in."""
    size = sum(Path(source.path).stat().st_size for source in files.find(folder))
    return int(max(2 * cores, min(4096, size // _BUCKET_BYTES)))


def audit(events, buckets, exempt=()):
    """Packed events -> ({name: DataFrame} of `schemas.TABLES`, what to unpersist).

    The tables of `tasks.WRITTEN` stay packed, for `write_table`.
    """
    events = events.persist(StorageLevel.DISK_ONLY)
    judged = transforms.judge(events, buckets).persist(StorageLevel.DISK_ONLY)
    related = transforms.relate(judged, buckets, exempt).persist(StorageLevel.DISK_ONLY)
    both = judged.unionByName(related)
    found = {
        "packets": events,
        "gaps": transforms.gaps(events),
        "captures": transforms.captures(events),
        "connections": transforms.table(judged, "connections", schemas.CONNECTIONS),
        "flows": judged,
        "sequences": transforms.sequences(judged, related),
        "violations": transforms.table(both, "violations", schemas.VIOLATIONS),
        "findings": transforms.table(both, "findings", schemas.FINDINGS),
        "keepalive": transforms.table(judged, "keepalive", schemas.KEEPALIVE),
        "readings": related,
        "losses": transforms.table(related, "losses", schemas.LOSSES),
    }
    return found, [events, judged, related]


def write(found, kept, out, progress=lambda done, total: None):
    """Write each table as a Parquet folder of its name under `out`.

    `kept` are the intermediate results in their order; `progress(done, total)` is
    called after each step.
    """
    # What was judged is made on the way to what is related: a job costs beside its work.
    steps = [kept[0], kept[-1]]
    total = len(steps) + len(found)
    for done, frame in enumerate(steps):
        frame.count()
        progress(done + 1, total)
    # Small tables are mostly waiting; several at a time keep the cores at work.  Large
    # ones stay in this thread: Spark knows its own sinks only in the session's thread.
    done = len(steps)
    with ThreadPoolExecutor(_WRITERS) as pool:
        jobs = [
            pool.submit(write_table, name, frame, Path(out) / name)
            for name, frame in found.items()
            if name not in tasks.WRITTEN
        ]
        for name in found.keys() & tasks.WRITTEN.keys():
            write_table(name, found[name], Path(out) / name)
            done += 1
            progress(done, total)
        for job in jobs:
            job.result()
            done += 1
            progress(done, total)


def write_table(name, frame, target):
    """Write one table of `audit` as the Parquet folder `target`."""
    target = Path(target)
    if name in tasks.WRITTEN:
        sink = frame.write.format("mqtt_table").mode("overwrite")
        sink.options(path=str(target), table=name).save()
    else:
        frame.write.mode("overwrite").partitionBy("site").parquet(str(target))
    if not any(target.rglob("*.parquet")):
        parquet.write_empty(target, schemas.TABLES[name], name in tasks.WRITTEN)


def summarise(session, out):
    """Count what the written tables hold -> `Result`."""
    result = Result()
    for name in schemas.TABLES:
        result.rows[name] = load(session, out, name).count()
    # What nobody can know is told in the tables and is no finding.
    known = "sure <> 'not_knowable'"
    losses = load(session, out, "losses").where("qos > 0").where(known).agg(F.sum("messages"))
    told = load(session, out, "findings").where("about <> 'capture'").where(known)
    sums = load(session, out, "sequences").agg(
        *(F.sum(name) for name in ("duplicates", "overtaking", "incomplete", "unmarked"))
    )
    # Where the publisher was captured, `sequences` knows what was delivered twice.
    twice = "qos = 2 and times_delivered > 1 and published is null"
    twice = load(session, out, "readings").where(twice)
    errors = load(session, out, "captures").where("counter = 'errors'").agg(F.sum("count"))
    # What was not read for a reason is said, and is no finding.
    missing = load(session, out, "gaps").where("kind not in ('UNREAD', 'ENCRYPTED')")
    duplicates, overtaking, incomplete, _ = sums.first()
    result.findings = {
        "violations": result.rows["violations"],
        "lost messages": losses.first()[0] or 0,
        "duplicates at QoS 2": (duplicates or 0) + twice.count(),
        "overtaking messages": overtaking or 0,
        "incomplete messages": incomplete or 0,
        "clients and brokers in trouble": told.count(),
        "places where bytes are missing": missing.count(),
        "damaged places in files": errors.first()[0] or 0,
    }
    return result


def load(session, out, name):
    """A written table as a DataFrame, `site` and `day` as columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(schemas.TABLES[name], prefer_timestamp_ntz=False)
    if name in tasks.WRITTEN:
        schema = schema.add("day", "date")
    return session.read.schema(schema).parquet(str(Path(out) / name))
