"""DataFrame -> DataFrame: the pipeline's steps.  Nothing here reads or writes.

    segments --decode--> events --judge--> tables, messages, subscriptions
    messages by topic and by device, subscriptions --relate--> losses, order, readings

All but `table` give packed rows (module `pack`); `table` makes plain rows of them.
"""

import gc

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from .. import schemas
from ..audit.judge import judge as judge_events
from ..audit.readings import COLUMNS as COLLECTED_COLUMNS
from ..audit.readings import readings as collect
from ..audit.routes import COLUMNS as ROUTED_COLUMNS
from ..audit.routes import is_wild, routes
from ..audit.rows import dictionary
from ..audit.sequences import ROUTED
from ..decode.decoder import only_gaps
from . import pack, tasks


def decode(segments, buckets, goes_on=False):
    """Packed segments (by connection) -> packed events (by client).

    `goes_on`: more of the same connections will come; see `tasks.decode_segments`.
    """

    def run(batches):
        return tasks.decode_segments(batches, buckets, goes_on)

    return _each(segments.repartitionById(buckets, "bucket"), run)


def _each(frame, run, schema=pack.PACKED):
    # Each partition through `run`.
    def task(batches):
        # Spark's worker looks for garbage after each task.  What is there before is
        # modules: tens of thousands of objects that it need not look at again.
        gc.freeze()
        return run(batches)

    return frame.mapInArrow(task, schema)


def by_client(events, buckets):
    """Plain rows of `schemas.EVENTS` -> packed events, for `judge`."""

    def run(batches):
        for batch in batches:
            coded = _coded(pa.Table.from_batches([batch]))
            entries = tasks.events_by_client(coded, buckets)
            yield pack.rows(("events", bucket, some) for bucket, some in entries)

    return _each(events, run)


def _coded(table):
    arrays = []
    for field in schemas.CODED_EVENTS:
        column = table[field.name].combine_chunks().cast(schemas.EVENTS.field(field.name).type)
        arrays.append(column.dictionary_encode() if field.type == schemas.CODED else column)
    return pa.table(arrays, schema=schemas.CODED_EVENTS)


def judge(events, buckets):
    """Packed events (by client) -> packed tables of `audit.judge`.

    Messages come as `flows`, as `routed` by topic and as `readings` by device, each with
    the columns that the next step reads; subscriptions come by topic.
    """

    def run(batches):
        parts = tasks.parts_named(batches, "events")
        if not parts:
            return
        tables = judge_events(pack.load(parts))
        messages, subscriptions = tables.pop("messages"), tables.pop("subscriptions")
        wills = tables.pop("wills")
        yield pack.rows((name, 0, table) for name, table in tables.items() if table.num_rows)
        flows = messages.filter(pc.greater(messages["qos"], 0)).select(schemas.FLOWS.names)
        yield pack.rows([("flows", 0, flows)])
        yield pack.rows(_by_topic(messages, subscriptions, wills, buckets))
        yield pack.rows(_by_device(messages, buckets))

    chosen = events.where(F.col("name") == "events")
    return _each(chosen.repartitionById(buckets, "bucket"), run)


def _by_topic(messages, subscriptions, wills, buckets):
    for name, found in (("routed", messages.select(ROUTED_COLUMNS)), ("wills", wills)):
        if found.num_rows:
            codes, names = dictionary(found["topic"])
            bucket = pack.text_buckets([*names.to_pylist(), None], buckets)[codes]
            for number, some in pack.split(found, bucket):
                yield name, number, some
    if not subscriptions.num_rows:
        return
    filters = subscriptions["filter"].to_pylist()
    wild = np.array([is_wild(text) for text in filters])
    exact = np.flatnonzero(~wild)
    if len(exact):
        own = pack.text_buckets([filters[at] for at in exact], buckets)
        for number, some in pack.split(subscriptions.take(pa.array(exact)), own):
            yield "subscriptions", number, some
    if wild.any():
        everywhere = subscriptions.filter(pa.array(wild))
        for number in range(buckets):
            yield "subscriptions", number, everywhere


def _by_device(messages, buckets):
    codes, names = dictionary(messages["device"])
    bucket = np.append(pack.text_buckets(names.to_pylist(), buckets), -1)[codes]
    for number, part in pack.split(messages.select(COLLECTED_COLUMNS), bucket):
        yield "readings", number, part


def relate(judged, buckets, exempt=()):
    """Messages by topic and by device -> packed `routes`, `losses`, `violations`, `readings`.

    One step for both, as what a step costs beside its work is not little.  `exempt` are
    filters of topics without order.
    """

    def run(batches):
        batches = list(batches)
        messages = tasks.parts_named(batches, "routed")
        if messages:
            wanted, wills = (
                pack.load(parts) if parts else schema.empty_table()
                for schema, parts in (
                    (schemas.SUBSCRIPTIONS, tasks.parts_named(batches, "subscriptions")),
                    (schemas.WILLS, tasks.parts_named(batches, "wills")),
                )
            )
            yield pack.rows(_filled(routes(pack.load(messages), wanted, exempt, wills)))
        of_devices = tasks.parts_named(batches, "readings")
        if of_devices:
            yield pack.rows(_filled(collect(pack.load(of_devices))))

    names = ("routed", "wills", "subscriptions", "readings")
    chosen = judged.where(F.col("name").isin(*names))
    return _each(chosen.repartitionById(buckets, "bucket"), run)


def _filled(tables):
    return [(name, 0, table) for name, table in tables.items() if table.num_rows]


def table(packed, name, schema, select=None):
    """Plain rows of all packed parts of this name, or of what `select(part)` makes of them."""

    def run(batches):
        for batch in batches:
            for part in batch["part"]:
                found = pack.load([part.as_buffer()])
                found = select(found) if select else found
                yield from pack.plain(found, schema).to_batches(max_chunksize=50_000)

    spark_schema = from_arrow_schema(schema, prefer_timestamp_ntz=False)
    return _each(packed.where(F.col("name") == name), run, spark_schema)


def gaps(events):
    """Packed events -> the `gaps` table: what stands where packets should be."""
    # Chosen before they become rows of the JVM: nearly all events are none.
    return table(events, "events", schemas.GAPS, only_gaps)


def sequences(judged, related):
    """The `sequences` table: what one client shows, and what only both ends show."""
    keys = ["site", "client_id", "topic", "qos"]
    own = table(judged, "sequences", schemas.SEQUENCES)
    found = table(related, "routes", schemas.ROUTES).groupBy(*keys)
    found = found.agg(*(F.sum(name).alias("found_" + name) for name in ROUTED))
    found = found.select(
        *("found_" + name for name in ROUTED),
        *(F.col(k).alias("route_" + k) for k in keys),
    )
    same = F.col("direction") == "s2c"
    for key in keys:
        same = same & F.col(key).eqNullSafe(F.col("route_" + key))
    joined = own.join(found, same, "full_outer")
    # A subscriber that got nothing at all of a topic has no sequence of its own.
    for key in keys:
        joined = joined.withColumn(key, F.coalesce(key, "route_" + key))
    joined = joined.withColumn("direction", F.coalesce("direction", F.lit("s2c")))
    for name in ROUTED:
        joined = joined.withColumn(name, F.coalesce("found_" + name, F.lit(0)))
    for name in ("messages", "packets", "redelivered", "unmarked", "incomplete", "in_flight_max"):
        joined = joined.withColumn(name, F.coalesce(name, F.lit(0)))
    return joined.select(*schemas.SEQUENCES.names)


def captures(events):
    """The `captures` table: counters of each file summed, its errors one by one."""
    rows = table(events, "captures", schemas.CAPTURES)
    keys = ["site", "capture", "counter", "offset", "detail"]
    summed = rows.groupBy(*keys).agg(F.sum("count").alias("count"))
    return summed.select(*schemas.CAPTURES.names)
