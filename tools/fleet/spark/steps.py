"""What the tasks do, step by step: pairs of bucket and `pack.Row` in and out; no Spark in here.

    ranges of files --read--> segments by connection --decode--> events by client
    --judge--> messages by topic and by device --relate--> what is left for the driver

Tasks write the tables that a step makes (module `tables`) and tell of the files, and give
what the report needs.  Rows of kinds that a step does not know go on as they are.
"""

import itertools
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import report, schemas
from ..audit import readings, routes
from ..audit.judge import judge as judge_events
from ..audit.rows import dictionary, nameless_client
from ..audit.sequences import with_ends
from ..audit.spans import are_wild, that_match
from ..capture import files, link
from ..capture.frames import Tally
from ..decode.decoder import Decoder, decoded, only_gaps, only_packets
from ..tables import Outbox, joined, plain
from . import pack

WRITTEN = "written"  # kind of the rows about files
_RUN_ROWS = 150_000


def read(parts, ports, buckets, options):
    """Packed rows of each `job.Range`, and what was counted of its files.

    With `options.whole_files` each holds whole connections, and is decoded here.
    """
    for part, source in ((one, source) for one in parts for source in one.sources):
        tally = Tally(is_growing=part.is_growing)
        origin = {"site": source.site, "capture": source.capture}
        if source.problem:
            tally.not_read(source.problem)
        elif options.whole_files or files.is_json(source):
            found = decoded(source, ports, tally, options.counters)
            yield from _gathered(found, buckets, **origin)
        else:
            site_bucket = int(pack.text_buckets(pa.array([source.site]), buckets)[0])
            where = part.begin, part.until, part.known
            for frames in files.read_frames(source.path, tally, *where):
                found = link.segments(frames, ports, tally)
                for bucket, some in pack.bucketed(found, site_bucket, buckets):
                    place = {"first_ts": part.first_ts, "begin": int(some.offset[0])}
                    packed = [("segments", bucket, pack.segment_table(some))]
                    yield from pack.rows(packed, **origin, **place)
        yield from pack.rows([("captures", 0, tally_table(source, tally))], **origin)


def decode(pairs, buckets, counters):
    """Packed segments of whole connections -> packed events."""
    rows = []
    for bucket, row in pairs:
        if row.kind == "segments":
            rows.append(row)
        else:
            yield bucket, row
    rows.sort(key=lambda row: (row.site, row.first_ts, row.capture, row.begin))
    for site, own in itertools.groupby(rows, lambda row: row.site):
        yield from _gathered(_decoded_rows(Decoder(site, counters), own), buckets)


def _decoded_rows(decoder, rows):
    # Parts of one capture are put together, so that each step has enough to do.
    for capture, group in itertools.groupby(rows, lambda row: row.capture):
        for tables in _runs(pack.load(row.part) for row in group):
            yield from decoder.feed(pack.segments(tables), capture)
    yield from decoder.finish()


def _gathered(batches, buckets, **origin):
    # Events of several batches, split by client when there are enough of them.
    for tables in _runs(pa.Table.from_batches([batch]) for batch in batches):
        table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        some = events_by_client(table, buckets)
        yield from pack.rows((("events", bucket, one) for bucket, one in some), **origin)


def _runs(tables):
    # Lists of tables with enough rows together.
    held = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) >= _RUN_ROWS:
            yield held
            held = []
    if held:
        yield held


def events_by_client(table, count):
    """(bucket, table) that bring each client's events together."""
    site, sites = dictionary(table["site"])
    client, clients = dictionary(table["client_id"])
    connection, connections = dictionary(table["connection"])
    bucket = np.append(pack.text_buckets(clients, count), 0)[client]
    is_nameless = np.append(pc.equal(clients, "").to_numpy(zero_copy_only=False), True)
    nameless = np.flatnonzero(is_nameless[client])
    if len(nameless):
        used, codes = np.unique(connection[nameless], return_inverse=True)
        names = [nameless_client(name) for name in connections.take(pa.array(used)).to_pylist()]
        bucket[nameless] = pack.text_buckets(pa.array(names), count)[codes]
    bucket = (bucket + pack.text_buckets(sites, count)[site]) % count
    return pack.split(table, bucket)


def tally_table(source, tally):
    """The `captures` rows of one file or part of a file."""
    rows = [(name, count, None, None) for name, count in sorted(tally.counts.items())]
    rows += [("error", 1, at, text) for at, text in tally.errors]
    rows += [("not_read", 1, None, text) for text in tally.unread]
    told = [(source.site, source.capture, *row) for row in rows]
    named = [dict(zip(schemas.CAPTURES.names, row, strict=True)) for row in told]
    return pa.Table.from_pylist(named, schemas.CAPTURES)


def judge(pairs, buckets, out):
    """Packed events of whole clients -> packed messages, subscriptions, sequences, wills.

    Messages come as `routed` by topic and as `readings` by device, each with the columns
    that the next step reads.
    """
    pairs = list(pairs)
    outbox = Outbox(out)
    counted, events = pack.named(pairs, "captures"), pack.named(pairs, "events")
    if counted:
        # Of all parts of all files: counters summed, errors one by one.
        keys = [name for name in schemas.CAPTURES.names if name != "count"]
        summed = counted.group_by(keys).aggregate([("count", "sum")])
        outbox.add("captures", summed.rename_columns({"count_sum": "count"}))
    if events:
        yield from _judged(events, buckets, outbox)
    yield from _told(outbox)


def _told(outbox):
    told = pa.table({"told": [json.dumps(outbox.finish())]})
    return pack.rows([(WRITTEN, 0, told)])


def _judged(events, buckets, outbox):
    packets = only_packets(events)
    outbox.add("packets", packets)
    outbox.add("gaps", only_gaps(events))
    found = judge_events(events)
    messages, subscriptions = found.pop("messages"), found.pop("subscriptions")
    sequences, wills = found.pop("sequences"), found.pop("wills")
    for name, table in found.items():
        outbox.add(name, table)
    # They come before the messages without an answer, which have no state.
    count = len(messages) - messages["state"].null_count
    outbox.add("flows", messages.select(schemas.FLOWS.names).slice(0, count))
    tables = outbox.tables() | {"messages": messages}
    yield from pack.rows((name, 0, one) for name, one in report.told(tables, packets, messages))
    yield from pack.rows(_by_topic(messages, subscriptions, sequences, wills, buckets))
    yield from pack.rows(_split("readings", messages, "device", buckets, readings.COLUMNS, -1))


def _by_topic(messages, subscriptions, sequences, wills, buckets):
    yield from _split("routed", messages, "topic", buckets, routes.COLUMNS)
    yield from _split("sequences", sequences, "topic", buckets)
    yield from _split("wills", wills, "topic", buckets)
    wild = are_wild(subscriptions["filter"])
    yield from _split("subscriptions", subscriptions.filter(pc.invert(wild)), "filter", buckets)
    if pc.any(wild).as_py():
        # Only the tasks with the messages know the topics.
        everywhere = subscriptions.filter(wild)
        for number in range(buckets):
            yield "wild", number, everywhere


def _split(name, table, column, buckets, columns=None, unnamed=0):
    # `unnamed`: the bucket of rows without a value; -1 leaves them out.
    if table.num_rows:
        codes, names = dictionary(table[column])
        table = table.select(columns or table.column_names)
        bucket = np.append(pack.text_buckets(names, buckets), unnamed)[codes]
        for number, some in pack.split(table, bucket):
            yield name, number, some


_OWN = ("routed", "subscriptions", "sequences", "wills", "readings", "wild")


def relate(pairs, exempt, out):
    """Messages of whole topics and devices -> tables, and what the report needs.

    `exempt` are filters of topics without order.
    """
    pairs = list(pairs)
    outbox = Outbox(out, leaves=("losses",))
    yield from (pair for pair in pairs if pair[1].kind not in _OWN)
    messages = pack.named(pairs, "routed") or schemas.MESSAGES.empty_table()
    latency = _relate_topics(pairs, messages, exempt, outbox)
    of_devices = pack.named(pairs, "readings")
    if of_devices:
        for name, table in readings.readings(of_devices).items():
            outbox.add(name, table)
    tables = outbox.tables() | {"latency": latency}
    yield from pack.rows((name, 0, one) for name, one in report.told(tables, None, messages))
    if "losses" in tables:  # the driver writes them, with their causes
        yield from pack.rows([("losses", 0, plain(tables["losses"], schemas.LOSSES))])
    yield from _told(outbox)


def _relate_topics(pairs, messages, exempt, outbox):
    # -> how long messages that are no readings were under way.
    own = pack.named(pairs, "sequences") or schemas.SEQUENCES.empty_table()
    wills = pack.named(pairs, "wills") or schemas.WILLS.empty_table()
    # The subscriptions that match the topics, their strings not coded: of the many names in
    # their parts only few are left.
    names = {name for one in (messages, wills) for name in dictionary(one["topic"])[1].to_pylist()}
    wanted = [schemas.SUBSCRIPTIONS.empty_table()]
    for one in (*pack.of_kind(pairs, "subscriptions"), *pack.of_kind(pairs, "wild")):
        wanted.append(plain(that_match(one, sorted(names)), schemas.SUBSCRIPTIONS))
    related = routes.routes(messages, joined(wanted).combine_chunks(), exempt, wills)
    found, latency = related.pop("routes"), related.pop("latency")
    for name, table in related.items():
        outbox.add(name, table)
    outbox.add("sequences", with_ends(own, found))
    return latency
