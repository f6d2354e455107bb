"""Captures -> packets in this process, for files that hold whole connections.

Also as Parquet files, for a look at single captures without Spark and Java; judging is left to
the audit.
"""

import pyarrow.parquet as pq

from . import schemas, tables
from .capture import files, jsonl, link
from .capture.counted import COUNTERS
from .capture.frames import Tally
from .decode.decoder import Decoder, only_packets


def decoded(source, ports, tally, counters=COUNTERS):
    """Yield the batches of `schemas.CODED_EVENTS` of one `files.Source`; `ports` is a set."""
    if files.is_json(source):
        yield from jsonl.read_events(source, tally, counters)
        return
    decoder = Decoder(source.site, counters)
    for frames in files.read_frames(source.path, tally):
        yield from decoder.feed(link.segments(frames, ports, tally), source.capture)
    yield from decoder.finish()


def convert(source, target, ports):
    """Write the packets of one `files.Source` to the Parquet file `target` -> `Tally`, which
    counts them as `packets`."""
    tally, schema = Tally(), schemas.CODED_PACKETS
    with pq.ParquetWriter(target, schema, **tables.options(schema)) as writer:
        for batch in decoded(source, ports, tally):
            packets = only_packets(batch).select(schema.names)
            tally.add("packets", packets.num_rows)
            writer.write_batch(packets)
    return tally
