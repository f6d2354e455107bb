"""What tasks of Spark do with captures: read, decode, pack.  No Spark in here.

All give rows of `schemas.FRAMES`, of the kinds `segments`, `events`, `captures`.
"""

import itertools
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

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
        gathered = _Gathered(buckets, shelf=shelf, **_origin(source))
        yield from gathered.add(jsonl.read_events(source, tally, part.begin, part.until))
        yield from gathered.flush()
    else:
        origin = _origin(source, first_ts=part.first_ts, begin=part.begin)
        site_bucket = int(pack.text_buckets(pa.array([source.site]), buckets)[0])
        for frames in files.read_frames(source.path, tally, part.begin, part.until, part.section):
            found = link.segments(frames, ports, tally)
            if len(found.ts):
                yield pack.rows(
                    (
                        ("segments", bucket, segments.to_table(some))
                        for bucket, some in segments.bucketed(found, site_bucket, buckets)
                    ),
                    shelf,
                    **origin,
                )
    yield pack.rows([("captures", 0, tally_table(source, tally))], **_origin(source))


def _origin(source, **more):
    return {"site": source.site, "capture": source.capture, **more}


def decode_segments(batches, buckets, goes_on=False, shelf=None):
    """Packed segments of whole connections -> packed events; everything else as it is.

    With `goes_on` more segments will come: the rows `decoder`, one for each site, hold what
    is open and are taken back the next time; `tail` rows are the events if nothing came.
    """
    parts, rest, decoders, own = [], [], {}, 0
    for batch in batches:
        for row in batch.to_pylist():
            if row["kind"] == "segments":
                parts.append(_Part(row))
                own = row["bucket"]
            elif row["kind"] == "decoder":
                decoders[row["site"]] = pickle.loads(row["part"])
                own = row["bucket"]
            else:
                rest.append(row)
    yield from _as_they_are(rest)
    gathered = _Gathered(buckets, shelf=shelf)
    for site, capture, found in _runs(sorted(parts, key=lambda part: part.order)):
        decoder = decoders.setdefault(site, Decoder(site))
        yield from gathered.add(decoder.feed(found, capture))
    if goes_on:
        yield from gathered.flush()
        gathered = _Gathered(buckets, "tail", shelf)
        kept = {"kind": "decoder", "bucket": own}
        yield from _as_they_are(
            [kept | {"site": site, "part": pickle.dumps(one)} for site, one in decoders.items()]
        )
    for decoder in decoders.values():
        yield from gathered.add(decoder.finish())
    yield from gathered.flush()


class _Part:
    # In order: by the time a capture begins, then by capture, then by place.
    def __init__(self, row):
        self.site, self.capture = row["site"], row["capture"]
        self.table = pack.load([row["part"]])
        offset = self.table["offset"][0].as_py()
        self.order = self.site, row["first_ts"], self.capture, row["begin"], offset


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
    def __init__(self, buckets, kind="events", shelf=None, **origin):
        self._buckets, self._kind, self._shelf, self._origin = buckets, kind, shelf, origin
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
            packed = ((self._kind, bucket, some) for bucket, some in entries)
            yield pack.rows(packed, self._shelf, **self._origin)


def _as_they_are(rest):
    if rest:
        yield pa.RecordBatch.from_pylist(rest, schemas.FRAMES.remove_metadata())


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
        gathered = _Gathered(buckets, shelf=shelf, **_origin(source))
        yield from gathered.add(_decoded(source, ports, tally))
        yield from gathered.flush()
    yield pack.rows([("captures", 0, tally_table(source, tally))], **_origin(source))


def read_packets(source, ports):
    """Plain rows of `schemas.EVENTS` of a file with whole connections."""
    for batch in _decoded(source, ports, Tally()):
        yield from pack.plain(pa.Table.from_batches([batch]), schemas.EVENTS).to_batches()


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


def parts_of(batches, kind):
    """The packed parts of this kind, as buffers."""
    return [
        part.as_buffer()
        for batch in batches
        for one, part in zip(batch["kind"].to_pylist(), batch["part"], strict=True)
        if one == kind
    ]


def others(batches, kinds):
    """All rows of other kinds, as they are."""
    for batch in batches:
        keep = [one not in kinds for one in batch["kind"].to_pylist()]
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
    if found is None or not found.num_rows:
        return own
    own = pack.plain(own, schemas.SEQUENCES).to_pandas(types_mapper=_NULLABLE.get)
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
