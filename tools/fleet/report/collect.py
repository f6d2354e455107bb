"""Tables of an audit -> the few thousand numbers that a report shows.

Everything large is summed by Spark; what comes back is plain lists and dicts, made
of JSON's types only.
"""

import csv
from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import Window
from pyspark.sql import functions as F

from ..audit.envelopes import decode
from ..spark.job import load
from .strips import strip

DEVICES = 20_000  # rows of the device table; the worst come first
_STRIPS = 40
_STRIP_PACKETS = 3_000
_EXAMPLES = 120
_AROUND = 4
_REQUIREMENTS = Path(__file__).resolve().parents[3] / "docs" / "requirements.tsv"


def collect(session, out, result):
    """-> the report's data for the tables under `out`; `result` as of `job.summarise`."""

    def table(name):
        return load(session, out, name)

    devices = _devices(table).persist()  # asked four times
    found = {
        "rows": result.rows,
        "findings": result.findings,
        "span": _span(table),
        "files": _files(table),
        "devices": devices.limit(DEVICES).toPandas().to_dict("split", index=False),
        "device_count": devices.count(),
        "groups": {name: _groups(devices, name) for name in ("firmware", "site")},
        "hours": _hours(table),
        "hot": _hot(table),
        "violations": _violations(table),
        "examples": _examples(session, table),
        "strips": _strips(session, table),
        "statements": statements(),
    }
    devices.unpersist()
    return found


def statements(path=_REQUIREMENTS):
    """{requirement: its statement}; empty where the list is not at hand."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as stream:
        return {row["id"]: row["statement"] for row in csv.DictReader(stream, delimiter="\t")}


def _iso(column):
    return F.date_format(column, "yyyy-MM-dd HH:mm:ss.SSS")


def _dicts(frame):
    return [row.asDict(recursive=True) for row in frame.collect()]


def _span(table):
    frame = table("packets").agg(F.min("ts").alias("a"), F.max("ts").alias("b"))
    return list(frame.select(_iso("a"), _iso("b")).first())


def _files(table):
    frame = table("captures").groupBy("site", "capture")
    frame = frame.agg(
        F.sum(F.when(F.col("counter") == "frames", F.col("count"))).alias("frames"),
        F.sum(F.when(F.col("counter") == "errors", F.col("count"))).alias("errors"),
        F.min(F.when(F.col("counter") == "error", F.struct("offset", "detail"))).alias("first"),
    )
    frame = frame.orderBy(F.desc_nulls_last("errors"), "capture").limit(500)
    return _dicts(
        frame.select("site", "capture", "frames", "errors", "first.offset", "first.detail")
    )


def _devices(table):
    keys = ["site", "client"]
    frames = [
        table("readings")
        .groupBy("site", F.col("device").alias("client"))
        .agg(
            F.max("firmware").alias("firmware"),
            F.countDistinct("boot").alias("boots"),
            F.count("*").alias("readings"),
            F.sum(F.when(F.col("times_delivered") > 1, 1).otherwise(0)).alias("delivered twice"),
            F.sum(F.col("redelivered").cast("int")).alias("sent again"),
            F.round(F.percentile_approx("latency_ms", 0.5), 1).alias("p50 ms"),
            F.round(F.percentile_approx("latency_ms", 0.95), 1).alias("p95 ms"),
        ),
        table("losses")
        .groupBy("site", F.coalesce("device", "client_id").alias("client"))
        .agg(F.sum("messages").alias("lost")),
        table("sequences")
        .groupBy("site", F.col("client_id").alias("client"))
        .agg(
            F.sum("messages").alias("messages"),
            F.sum("overtaking").alias("overtaking"),
            F.sum("incomplete").alias("incomplete"),
        ),
        table("violations")
        .groupBy("site", F.col("client_id").alias("client"))
        .agg(F.count("*").alias("violations")),
        table("connections")
        .groupBy("site", F.col("client_id").alias("client"))
        .agg(F.count("*").alias("connections"), F.sum("gaps").alias("gaps")),
    ]
    joined = frames[0]
    for frame in frames[1:]:
        joined = joined.join(frame, keys, "full_outer")
    joined = joined.na.fill(0)
    bad = F.col("lost") * 10 + F.col("violations") * 5 + F.col("overtaking") * 5
    bad = bad + F.col("delivered twice") * 5 + F.col("incomplete")
    joined = joined.withColumn("client", F.coalesce("client", F.lit("(unknown)")))
    joined = joined.withColumn("badness", bad)
    order = ("badness", "lost", "violations", "overtaking", "delivered twice", "incomplete")
    middle = ("sent again", "messages", "readings", "p50 ms", "p95 ms", "connections", "boots")
    chosen = joined.select(*keys, "firmware", *order, *middle, "gaps")
    return chosen.orderBy(F.desc("badness"), "site", "client")


def _groups(devices, name):
    frame = devices.groupBy(name).agg(
        F.count("*").alias("clients"),
        F.sum("readings").alias("readings"),
        F.sum("lost").alias("lost"),
        F.sum("violations").alias("violations"),
    )
    return _dicts(frame.where(F.col(name).isNotNull()).orderBy(F.desc("lost")).limit(200))


def _hours(table):
    def hour(column):
        return F.date_format(F.date_trunc("hour", column), "yyyy-MM-dd'T'HH:mm:ss").alias("hour")

    readings = (
        table("readings")
        .groupBy(hour("ts"))
        .agg(
            F.count("*").alias("readings"),
            F.round(F.percentile_approx("latency_ms", 0.5), 2).alias("p50"),
            F.round(F.percentile_approx("latency_ms", 0.95), 2).alias("p95"),
            F.round(F.max("latency_ms"), 2).alias("max"),
        )
    )
    losses = table("losses").groupBy(hour("ts")).agg(F.sum("messages").alias("lost"))
    broken = table("violations").groupBy(hour("ts")).agg(F.count("*").alias("violations"))
    packets = table("packets").groupBy(hour("ts")).agg(F.count("*").alias("packets"))
    frame = packets
    for other in (readings, losses, broken):
        frame = frame.join(other, "hour", "full_outer")
    frame = frame.na.fill(0, ["packets", "readings", "lost", "violations"])
    return _dicts(frame.orderBy("hour").limit(10_000))


def _hot(table):
    # Findings of the worst clients, hour by hour.
    lost = table("losses").select(
        F.coalesce("device", "client_id").alias("client"), "ts", F.col("messages").alias("n")
    )
    broken = table("violations").select(F.col("client_id").alias("client"), "ts", F.lit(1))
    both = lost.union(broken).where(F.col("client").isNotNull())
    worst = both.groupBy("client").agg(F.sum("n").alias("all")).orderBy(F.desc("all"), "client")
    hour = F.date_format(F.date_trunc("hour", "ts"), "yyyy-MM-dd'T'HH:mm:ss").alias("hour")
    frame = both.join(worst.limit(40), "client").groupBy("client", hour)
    return _dicts(frame.agg(F.sum("n").alias("findings")).orderBy("client", "hour").limit(20_000))


def _violations(table):
    frame = (
        table("violations")
        .groupBy("requirement", "by")
        .agg(F.count("*").alias("number"), F.countDistinct("site", "client_id").alias("clients"))
    )
    return _dicts(frame.orderBy(F.desc("number"), "requirement"))


def _examples(session, table):
    """Some violations of each kind, with the packets of the connection around them."""
    first = Window.partitionBy("requirement").orderBy("ts", "site", "connection", "number")
    chosen = table("violations").withColumn("place", F.row_number().over(first))
    chosen = chosen.where("place <= 8").orderBy("place", "requirement").limit(_EXAMPLES)
    examples = _dicts(chosen.withColumn("ts", _iso("ts")).drop("place"))
    for number, example in enumerate(examples):
        example["id"] = number
        example["around"] = []
    if not examples:
        return []
    keys = [(e["id"], e["site"], e["connection"], e["number"]) for e in examples]
    keys = session.createDataFrame(keys, "id int, site string, connection string, at long")
    nearest = Window.partitionBy("id", F.col("number") <= F.col("at")).orderBy(
        F.abs(F.col("number") - F.col("at"))
    )
    packets = table("packets").join(F.broadcast(keys), ["site", "connection"])
    packets = packets.withColumn("rank", F.row_number().over(nearest))
    packets = packets.where(F.col("rank") <= _AROUND + 1).orderBy("id", "number")
    columns = ("id", "number", "direction", "packet_type", "qos", "dup", "packet_id", "topic")
    for row in packets.select(*columns, "payload_bytes", _iso("ts").alias("ts")).collect():
        examples[row.id]["around"].append(row.asDict())
    return examples


def _strips(session, table):
    """What subscribers got of a topic, packet by packet, where it was not 1, 2, 3."""
    bad = F.col("overtaking") * 9 + F.col("duplicates") * 9 + F.col("lost") * 3
    chosen = table("sequences").where("direction = 's2c'")
    chosen = chosen.withColumn("bad", bad + F.least("redelivered", F.lit(5)))
    chosen = chosen.where("bad > 0").orderBy(F.desc("bad"), "site", "client_id", "topic")
    chosen = chosen.select("site", "client_id", "topic", "qos", "bad").limit(_STRIPS)
    wanted = [row.asDict() for row in chosen.collect()]
    if not wanted:
        return []
    for number, one in enumerate(wanted):
        one["id"] = number
    keys = session.createDataFrame(
        [(w["id"], w["site"], w["client_id"], w["topic"], w["qos"]) for w in wanted],
        "id int, site string, client_id string, topic string, qos int",
    )
    keys = F.broadcast(keys).alias("k")
    packets = table("packets").where("packet_type = 'PUBLISH' and direction = 's2c'").alias("p")
    same = [F.col("p." + n).eqNullSafe(F.col("k." + n)) for n in ("site", "client_id", "topic")]
    packets = packets.join(keys, [*same, F.col("p.qos") == F.col("k.qos")])
    order = Window.partitionBy("id").orderBy("p.ts", "p.number")
    packets = packets.withColumn("rank", F.row_number().over(order))
    packets = packets.where(F.col("rank") <= _STRIP_PACKETS).orderBy("id", "rank")
    rows = packets.select("id", "dup", "packet_id", "payload_hash", "envelope").toArrow()
    found = [_strip(one, rows.filter(_is(rows, one["id"]))) for one in wanted]
    return [one for one in found if one]


def _is(rows, number):
    return pc.equal(rows["id"], number)


def _strip(wanted, rows):
    reading = decode(rows["envelope"])
    return strip(
        wanted,
        rows["dup"].to_pylist(),
        rows["packet_id"].to_pylist(),
        rows["payload_hash"].to_pylist(),
        list(zip(reading["boot"].to_pylist(), reading["sequence"].to_pylist(), strict=True)),
    )
