"""What tasks of Spark do with captures: read, decode, pack.  No Spark in here.

Names of packed parts: `segments:SITE\\0CAPTURE\\0FIRST_TS\\0BEGIN`, `events`, `captures`.
"""

import itertools
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa

from .. import schemas
from ..audit.rows import dictionary, nameless_client
from ..capture import files, jsonl, link
from ..capture.frames import Tally
from ..decode.decoder import Decoder
from . import pack, segments

_RUN_ROWS = 150_000


def read(part, mode, ports, buckets, shelf=None):
    """Packed rows of one `source.Range`; `mode` is `segments` or `events`."""
    for source in part.sources:
        if mode == "segments":
            yield from read_segments(source, part, ports, buckets, shelf)
        else:
            yield from read_events(source, ports, buckets, shelf)


def read_segments(source, part, ports, buckets, shelf=None):
    """Packed segments of one part of a file, and its tally."""
    tally = Tally()
    if source.problem:
        tally.not_read(source.problem)
    elif files.is_json(source):
        gathered = _Gathered(buckets, shelf=shelf)
        yield from gathered.add(jsonl.read_events(source, tally, part.begin, part.until))
        yield from gathered.flush()
    else:
        name = "\0".join(
            (source.site, source.capture, "%020d" % part.first_ts, "%020d" % part.begin)
        )
        site_bucket = int(pack.text_buckets([source.site], buckets)[0])
        for frames in files.read_frames(source.path, tally, part.begin, part.until, part.section):
            found = link.segments(frames, ports, tally)
            if len(found.ts):
                yield pack.rows(
                    (
                        ("segments:" + name, bucket, segments.to_table(some))
                        for bucket, some in segments.bucketed(found, site_bucket, buckets)
                    ),
                    shelf,
                )
    yield pack.rows([("captures", 0, tally_table(source, tally))])


def decode_segments(batches, buckets, goes_on=False, shelf=None):
    """Packed segments of whole connections -> packed events; everything else as it is.

    With `goes_on` more segments will come: the rows `decoder:SITE` hold what is open
    and are taken back the next time; `tail` rows are the events if nothing came.
    """
    parts, rest, decoders, own = [], [], {}, 0
    for batch in batches:
        for name, bucket, part in zip(*(column.to_pylist() for column in batch), strict=True):
            if name.startswith("segments:"):
                parts.append(_Part(name, part))
                own = bucket
            elif name.startswith("decoder:"):
                decoders[name.removeprefix("decoder:")] = pickle.loads(part)
                own = bucket
            else:
                rest.append((name, bucket, part))
    yield from _as_they_are(rest)
    gathered = _Gathered(buckets, shelf=shelf)
    for site, capture, found in _runs(sorted(parts, key=lambda part: part.order)):
        decoder = decoders.setdefault(site, Decoder(site))
        yield from gathered.add(decoder.feed(found, capture))
    if goes_on:
        yield from gathered.flush()
        gathered = _Gathered(buckets, "tail", shelf)
        kept = [("decoder:" + site, own, pickle.dumps(one)) for site, one in decoders.items()]
        yield from _as_they_are(kept)
    for decoder in decoders.values():
        yield from gathered.add(decoder.finish())
    yield from gathered.flush()


class _Part:
    # In order: by the time a capture begins, then by capture, then by place.
    def __init__(self, name, data):
        self.site, self.capture, first_ts, begin = name[len("segments:") :].split("\0")
        self.table = pack.load([data])
        offset = self.table["offset"][0].as_py()
        self.order = self.site, first_ts, self.capture, begin, offset


def _runs(parts):
    # Parts of one capture put together, so that each step has enough to do.
    for (site, capture), group in itertools.groupby(parts, lambda p: (p.site, p.capture)):
        tables, count = [], 0
        for part in group:
            tables.append(part.table)
            count += part.table.num_rows
            if count >= _RUN_ROWS:
                yield site, capture, segments.from_tables(tables)
                tables, count = [], 0
        if tables:
            yield site, capture, segments.from_tables(tables)


class _Gathered:
    # Events of several batches, split by client when there are enough of them.
    def __init__(self, buckets, name="events", shelf=None):
        self._buckets, self._name, self._shelf = buckets, name, shelf
        self._tables, self._count = [], 0

    def add(self, batches):
        for batch in batches:
            self._tables.append(pa.Table.from_batches([batch]))
            self._count += batch.num_rows
            if self._count >= _RUN_ROWS:
                yield from self.flush()

    def flush(self):
        if self._tables:
            table = pa.concat_tables(self._tables).unify_dictionaries().combine_chunks()
            self._tables, self._count = [], 0
            entries = events_by_client(table, self._buckets)
            yield pack.rows(((self._name, bucket, some) for bucket, some in entries), self._shelf)


def _as_they_are(rest):
    if rest:
        names, buckets, parts = zip(*rest, strict=True)
        yield pa.RecordBatch.from_arrays(
            [
                pa.array(names, pa.string()),
                pa.array(buckets, pa.int32()),
                pa.array(parts, pa.binary()),
            ],
            names=["name", "bucket", "part"],
        )


def _decoded(source, ports, tally):
    # Coded batches of one file with whole connections.
    if files.is_json(source):
        yield from jsonl.read_events(source, tally)
        return
    decoder = Decoder(source.site)
    for frames in files.read_frames(source.path, tally):
        yield from decoder.feed(link.segments(frames, ports, tally), source.capture)
    yield from decoder.finish()


def read_events(source, ports, buckets, shelf=None):
    """Packed events of a file with whole connections, and its tally."""
    tally = Tally()
    if source.problem:
        tally.not_read(source.problem)
    else:
        gathered = _Gathered(buckets, shelf=shelf)
        yield from gathered.add(_decoded(source, ports, tally))
        yield from gathered.flush()
    yield pack.rows([("captures", 0, tally_table(source, tally))])


def read_packets(source, ports):
    """Plain rows of `schemas.EVENTS` of a file with whole connections."""
    for batch in _decoded(source, ports, Tally()):
        yield from pack.plain(pa.Table.from_batches([batch]), schemas.EVENTS).to_batches()


def events_by_client(table, count):
    """(bucket, table) that bring each client's events together."""
    site, sites = dictionary(table["site"])
    client, clients = dictionary(table["client_id"])
    connection, connections = dictionary(table["connection"])
    texts = [*(value or None for value in clients.to_pylist()), None]
    by_client = pack.text_buckets(texts, count)
    unknown = [value is None for value in texts]
    bucket = by_client[client]
    if any(unknown):
        names = [nameless_client(name) for name in connections.to_pylist()]
        by_connection = pack.text_buckets(names, count)
        bucket = np.where(np.array(unknown)[client], by_connection[connection], bucket)
    bucket = (bucket + pack.text_buckets(sites.to_pylist(), count)[site]) % count
    return pack.split(table, bucket)


def tally_table(source, tally):
    """The `captures` rows of one file or part of a file."""
    rows = [
        (source.site, source.capture, name, count, None, None)
        for name, count in sorted(tally.counts.items())
    ]
    rows += [(source.site, source.capture, "error", 1, at, text) for at, text in tally.errors]
    rows += [(source.site, source.capture, "not_read", 1, None, text) for text in tally.unread]
    columns = zip(*rows, strict=True) if rows else [[]] * 6
    arrays = [
        pa.array(list(column), field.type)
        for column, field in zip(columns, schemas.CAPTURES, strict=True)
    ]
    return pa.table(arrays, schema=schemas.CAPTURES)


def parts_named(batches, name):
    """The packed parts of this name, as buffers."""
    return [
        part.as_buffer()
        for batch in batches
        for one, part in zip(batch["name"].to_pylist(), batch["part"], strict=True)
        if one == name
    ]


def others(batches, names):
    """All rows of other names, as they are."""
    for batch in batches:
        keep = [one not in names for one in batch["name"].to_pylist()]
        if any(keep):
            yield batch.filter(pa.array(keep))


def summed(captures):
    """`captures` rows of all parts of all files: counters summed, errors one by one."""
    keys = ["site", "capture", "counter", "offset", "detail"]
    found = captures.group_by(keys).aggregate([("count", "sum")])
    return found.rename_columns({"count_sum": "count"}).select(schemas.CAPTURES.names)


_KEYS = ["site", "client_id", "topic", "qos"]


def sequences(own, found):
    """The `sequences` table: what one client shows, and what only both ends show.

    `own` are rows of some topics, `found` all that `routes` says of them, or None.
    """
    own = pack.plain(own, schemas.SEQUENCES).to_pandas(types_mapper=_NULLABLE.get)
    if found is None or not found.num_rows:
        return pa.Table.from_pandas(own, schemas.SEQUENCES, preserve_index=False)
    counts = [name for name in schemas.ROUTES.names if name not in _KEYS]
    found = pack.plain(found, schemas.ROUTES).to_pandas(types_mapper=_NULLABLE.get)
    found = found.groupby(_KEYS, dropna=False, as_index=False)[counts].sum()
    found["direction"] = "s2c"
    keys = [*_KEYS, "direction", "one"]
    # Clients without a known id have several rows: of these the first counts for all.
    own["one"] = own.groupby([*_KEYS, "direction"], dropna=False).cumcount()
    found["one"] = 0
    # A subscriber that got nothing at all of a topic has no sequence of its own.
    joined = own.drop(columns=counts).merge(found, "outer", keys)
    for name in schemas.SEQUENCES.names:
        if name not in keys and not name.startswith("latency"):
            joined[name] = joined[name].fillna(0)
    return pa.Table.from_pandas(joined, schemas.SEQUENCES, preserve_index=False)


# So that whole numbers stay whole where there is none.
_NULLABLE = {
    pa.int64(): pd.Int64Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int8(): pd.Int8Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.string(): pd.StringDtype("python"),
}
