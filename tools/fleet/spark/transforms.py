"""DataFrame -> DataFrame: the pipeline's steps.

    segments --decode--> events --judge--> messages, subscriptions, sequences
    messages by topic and by device --relate--> losses, order, readings
    what all of them tell, by client --sum_up--> devices, and what the report shows

All but `table` give packed rows (module `pack`); `table` makes plain rows of them.  With a
`tables.Sink` the tasks write the tables that a step makes, and its rows tell of the files;
without one, the tables are packed rows too.  `shelf`: see `pack`.
"""

import gc
import pickle

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
from ..audit.routes import routes
from ..audit.rows import dictionary
from ..audit.spans import beginnings, candidates
from ..decode.decoder import only_gaps, only_packets
from ..places import java
from ..report import devices, facts
from . import pack, source, tasks
from .tables import Outbox

_FEW_FILES = 64
_MOST_TASKS = 4096
# As text (`pack.PACKED`) Java would read them anew for each step.
_FRAMES = from_arrow_schema(schemas.FRAMES, prefer_timestamp_ntz=False)
_PARTS = from_arrow_schema(schemas.PARTS, prefer_timestamp_ntz=False)


def plan(session, sources, is_cut, range_bytes):
    """`source.ranges` of all files; more than a few are opened by tasks, not by the driver."""
    if len(sources) <= _FEW_FILES:
        return source.ranges(sources, is_cut, range_bytes)

    def run(batches):
        for batch in batches:
            for part in batch["part"].to_pylist():
                found = source.ranges(pickle.loads(part), is_cut, range_bytes)
                yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(found)])], ["part"])

    starts = range(0, len(sources), _FEW_FILES)
    rows = [(pickle.dumps(sources[at : at + _FEW_FILES]),) for at in starts]
    found = _each(session.createDataFrame(rows, "part binary"), run, "part binary").toArrow()
    return [one for part in found["part"].to_pylist() for one in pickle.loads(part)]


def read(session, ranges, mode, ports, buckets, shelf=None):
    """Packed rows of what `ranges` of captures hold, one task each; of very many, some.

    `mode` is that of the data source `mqtt_pcap`, which does the same by name; asking it
    would start three more Python processes.
    """
    ranges = list(ranges)

    def run(batches):
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from tasks.read(ranges[number], mode, ports, buckets, shelf)

    count = len(ranges)
    return _each(session.range(0, count, 1, max(1, min(count, _MOST_TASKS))), run, _FRAMES)


def decode(segments, buckets, goes_on=False, shelf=None):
    """Packed segments (by connection) -> packed events (by client).

    `goes_on`: more of the same connections will come; see `tasks.decode_segments`.
    """

    def run(batches):
        return tasks.decode_segments(batches, buckets, goes_on, shelf)

    return _each(segments.repartitionById(buckets, "bucket"), run, _FRAMES)


def _each(frame, run, schema=_PARTS):
    # Each partition through `run`.
    settings = java.settings()

    def task(batches):
        java.adopt(settings)
        # Spark's worker looks for garbage after each task.  What is there before is
        # modules: tens of thousands of objects that it need not look at again.  In between
        # there is next to none, and all connections so far would be looked through for it.
        gc.freeze()
        gc.disable()
        return run(batches)

    return frame.mapInArrow(task, schema)


def by_client(events, buckets):
    """Plain rows of `schemas.EVENTS` or `PACKETS` -> packed events, for `judge`."""

    def run(batches):
        for batch in batches:
            coded = _coded(pa.Table.from_batches([batch]))
            entries = tasks.events_by_client(coded, buckets)
            yield pack.parts(("events", bucket, some) for bucket, some in entries)

    return _each(events, run)


def _coded(table):
    arrays = []
    for field in schemas.CODED_EVENTS:
        if field.name not in table.column_names:  # the table `packets`, read back
            arrays.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table[field.name].combine_chunks().cast(schemas.EVENTS.field(field.name).type)
        arrays.append(column.dictionary_encode() if field.type == schemas.CODED else column)
    return pa.table(arrays, schema=schemas.CODED_EVENTS)


def judge(events, buckets, later_buckets, sink=None, shelf=None):
    """Packed events (by client) -> packed tables of `audit.judge`, in `later_buckets`.

    Messages come as `routed` by topic and as `readings` by device, each with the columns
    that the next step reads; subscriptions and sequences come by topic.
    """

    def run(batches):
        batches = list(batches)
        outbox = Outbox(sink)
        counted = tasks.parts_of(batches, "captures")
        if counted:
            outbox.add("captures", tasks.summed(pack.load(counted)))
        parts = tasks.parts_of(batches, "events")
        if parts:
            yield from _judged(pack.load(parts), later_buckets, outbox, sink, shelf)
        yield pack.parts(outbox.finish(), shelf)

    return _each(events.repartitionById(buckets, "bucket"), run)


def _judged(events, buckets, outbox, sink, shelf):
    packets = only_packets(events) if sink else None
    if sink:
        outbox.add("packets", packets)
    outbox.add("gaps", only_gaps(events))
    found = judge_events(events)
    messages, subscriptions = found.pop("messages"), found.pop("subscriptions")
    sequences, wills = found.pop("sequences"), found.pop("wills")
    for name, table in found.items():
        outbox.add(name, table)
    outbox.add("flows", _flows(messages))
    if sink:
        tables = outbox.tables() | {"messages": messages}
        told = _facts(sink, facts.of_clients, tables, packets, messages)
        yield pack.parts(_told(told, buckets), shelf)
    yield pack.parts(_by_topic(messages, subscriptions, sequences, wills, buckets), shelf)
    yield pack.parts(_by_device(messages, buckets), shelf)


def _flows(messages):
    # They stand before those that nobody answers, which have no state.
    count = len(messages) - messages["state"].null_count
    return messages.select(schemas.FLOWS.names).slice(0, count)


def _by_topic(messages, subscriptions, sequences, wills, buckets):
    if messages.num_rows:
        codes, names = dictionary(messages["topic"])
        of_name = np.append(pack.text_buckets(names, buckets), 0)
        yield from _parts("routed", messages.select(ROUTED_COLUMNS), of_name[codes])
        # Their topics are numbered as those of the messages that they sum up.
        yield from _parts("sequences", sequences, of_name[dictionary(sequences["topic"])[0]])
    yield from _split("wills", wills, "topic", buckets)
    if not subscriptions.num_rows:
        return
    wild = pc.is_valid(subscriptions["prefix"])
    exact = subscriptions.filter(pc.invert(wild))
    yield from _split("subscriptions", exact, "filter", buckets)
    if pc.any(wild).as_py():
        # Which topics there are, only the tasks that have them know.
        everywhere = subscriptions.filter(wild)
        for number in range(buckets):
            yield "wild", number, everywhere


def _split(name, table, column, buckets):
    if table.num_rows:
        codes, names = dictionary(table[column])
        yield from _parts(name, table, np.append(pack.text_buckets(names, buckets), 0)[codes])


def _parts(name, table, bucket):
    for number, some in pack.split(table, bucket):
        yield name, number, some


def _by_device(messages, buckets):
    codes, names = dictionary(messages["device"])
    bucket = np.append(pack.text_buckets(names, buckets), -1)[codes]
    yield from _parts("readings", messages.select(COLLECTED_COLUMNS), bucket)


def relate(judged, buckets, exempt=(), sink=None, shelf=None):
    """Messages by topic and by device -> `losses`, `violations`, `sequences`, `readings`.

    One step for all, as what a step costs beside its work is not little.  `exempt` are
    filters of topics without order.  All other rows go on as they are.
    """
    # On one computer no task is run again, but for local[cores,tries], and nobody else reads
    # what it read.
    master = judged.sparkSession.sparkContext.master
    is_last = master.startswith("local[") and "," not in master

    def run(batches):
        batches = list(batches)
        outbox = Outbox(sink)
        yield from tasks.others(batches, _RELATED)
        messages = _named(batches, "routed")
        _relate_topics(batches, messages, exempt, outbox)
        of_devices = _named(batches, "readings")
        if of_devices:
            for name, table in collect(of_devices).items():
                outbox.add(name, table)
        if sink:
            told = _facts(sink, facts.of_topics, outbox.tables(), messages)
            yield pack.parts(_told(told, buckets), shelf)
        yield pack.parts(outbox.finish(), shelf)
        for kind in _OWN if is_last else ():
            pack.forget(tasks.parts_of(batches, kind))

    return _each(judged.repartitionById(buckets, "bucket"), run)


_OWN = ("routed", "subscriptions", "sequences", "wills", "readings")  # of one bucket alone
_RELATED = (*_OWN, "wild")


def _relate_topics(batches, messages, exempt, outbox):
    own, found = _named(batches, "sequences"), None
    if messages:
        wanted = _wanted(batches, messages)
        wills = _named(batches, "wills") or schemas.WILLS.empty_table()
        related = routes(messages, wanted, exempt, wills)
        found = related.pop("routes")
        for name, table in related.items():
            outbox.add(name, table)
    if own or found:
        own = own or schemas.SEQUENCES.empty_table()
        outbox.add("sequences", tasks.sequences(own, found))


def _wanted(batches, messages):
    # The subscriptions that can match these messages, their strings not coded: of the many
    # names in their parts only few are left.
    found = []
    exact = _named(batches, "subscriptions")
    if exact:
        found.append(pack.plain(exact, schemas.SUBSCRIPTIONS))
    wild = [pack.load([part]) for part in tasks.parts_of(batches, "wild")]
    if wild:
        known = beginnings(dictionary(messages["topic"])[1].cast(pa.string()))
        near = candidates(pa.concat_tables(wild), known)
        found.append(pack.plain(near, schemas.SUBSCRIPTIONS))
    return pack.joined(found) if found else schemas.SUBSCRIPTIONS.empty_table()


def _named(batches, kind):
    # One table of all parts of this kind; None when there is none.
    parts = tasks.parts_of(batches, kind)
    return pack.load(parts) if parts else None


def _facts(sink, function, tables, *rest):
    # What the report needs; site by site where the sink keeps sites apart.
    if sink.sites is None:
        return function(tables, *rest)
    return facts.each_site(function, tables, *rest)


def _told(found, buckets):
    # Rows by client go to the client's bucket, all others to the first.
    for name, table in found:
        if table is None or not table.num_rows:
            continue
        if name == "devices":
            yield from _split(name, table, "client_id", buckets)
        else:
            yield name, 0, table


def sum_up(related, buckets, sink, shelf=None):
    """What was told of clients -> the table `devices`, and one part of each of `facts`."""

    def run(batches):
        batches = list(batches)
        outbox = Outbox(sink)
        yield from tasks.others(batches, ("devices", *facts.MERGED))
        parts = [pack.load([part]) for part in tasks.parts_of(batches, "devices")]
        if parts:
            outbox.add("devices", devices.merge(parts))
        merged = []
        for name in facts.MERGED:
            parts = [pack.load([part]) for part in tasks.parts_of(batches, name)]
            if parts:
                merged.append((name, 0, facts.merged(name, parts)))
        yield pack.parts([*outbox.finish(), *merged], shelf)

    return _each(related.repartitionById(buckets, "bucket"), run)


def packets(events, sink):
    """Packed events -> rows that tell of the files of the table `packets`."""

    def run(batches):
        outbox = Outbox(sink)
        for batch in batches:
            for part in tasks.parts_of([batch], "events"):
                outbox.add("packets", only_packets(pack.load([part])))
        yield pack.parts(outbox.finish())

    return _each(events.where("kind = 'events'"), run)


def table(packed, kind, schema):
    """Plain rows of all packed parts of this kind."""

    def run(batches):
        for batch in batches:
            for part in batch["part"]:
                found = pack.load([part.as_buffer()])
                yield from pack.plain(found, schema).to_batches(max_chunksize=50_000)

    spark_schema = from_arrow_schema(schema, prefer_timestamp_ntz=False)
    return _each(packed.where(F.col("kind") == kind), run, spark_schema)
