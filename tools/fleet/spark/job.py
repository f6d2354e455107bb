"""The batch job: a folder of captures in, a folder of tables out."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import functions as F

from .. import schemas
from ..audit.judge import TABLES as JUDGED
from ..capture import files
from . import transforms

PARTITIONED = {"packets": "ts", "flows": "first_sent", "readings": "ts"}
_BUCKET_BYTES = 24 << 20


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
    """Rows of each table, and what counts as a finding."""

    rows: dict = field(default_factory=dict)
    findings: dict = field(default_factory=dict)
    errors: int = 0

    @property
    def is_clean(self):
        """Nothing lost, repeated, broken or unreadable?"""
        return not any(self.findings.values())


def read(session, folder, options):
    """-> (packed events by client, buckets)."""
    buckets = options.buckets or count_buckets(folder, session.sparkContext.defaultParallelism)
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


def tables(events, buckets, exempt=()):
    """Packed events -> {name: DataFrame} of `schemas.TABLES`, and what to unpersist."""
    events = events.persist(StorageLevel.DISK_ONLY)
    judged = transforms.judge(events, buckets).persist(StorageLevel.DISK_ONLY)
    routed = transforms.route(judged, buckets, exempt).persist(StorageLevel.DISK_ONLY)
    collected = transforms.collect_readings(judged, buckets).persist(StorageLevel.DISK_ONLY)
    both = routed.unionByName(judged)
    found = {
        "packets": transforms.packets(events),
        "gaps": transforms.gaps(events),
        "captures": transforms.captures(events),
        "flows": transforms.table(judged, "messages", JUDGED["messages"])
        .where("qos > 0")
        .select(*schemas.FLOWS.names),
        "sequences": transforms.sequences(judged, routed),
        "violations": transforms.table(both, "violations", schemas.VIOLATIONS),
        "readings": transforms.table(collected, "readings", schemas.READINGS),
        "losses": transforms.table(
            routed.unionByName(collected), "losses", schemas.LOSSES
        ),
    }
    for name in ("connections", "keepalive"):
        found[name] = transforms.table(judged, name, JUDGED[name])
    return found, [events, judged, routed, collected]


def write(found, out, progress=None):
    """Write each table as a Parquet folder of its name under `out`."""
    for name in schemas.TABLES:
        frame = found[name]
        writer = frame
        columns = ["site"]
        if name in PARTITIONED:
            writer = writer.withColumn("day", F.to_date(PARTITIONED[name]))
            columns.append("day")
        if progress:
            progress(name)
        target = Path(out) / name
        if target.exists():
            shutil.rmtree(target)
        writer.write.mode("overwrite").partitionBy(*columns).parquet(str(target))
