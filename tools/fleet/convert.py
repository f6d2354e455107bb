"""Captures -> Parquet files of packets, one for each capture, in this process.

For a look at single files without Spark and Java.  Every file is taken to hold
whole connections; judging is left to the audit.
"""

import pyarrow.parquet as pq

from . import schemas, tables
from .capture import files, link
from .capture.frames import Tally
from .decode.decoder import Decoder, only_packets


def convert(source, target, ports):
    """Write the packets of one `files.Source` to the Parquet file `target` -> `Tally`.

    `ports` is a set; the tally counts the packets written as `packets`.
    """
    tally = Tally()
    decoder = Decoder(source.site)
    with _writer(target) as writer:
        for frames in files.read_frames(source.path, tally):
            _write(
                writer, decoder.feed(link.segments(frames, ports, tally), source.capture), tally
            )
        _write(writer, decoder.finish(), tally)
    return tally


def _writer(target):
    return pq.ParquetWriter(target, schemas.CODED_PACKETS, **tables.options(schemas.CODED_PACKETS))


def _write(writer, batches, tally):
    for batch in batches:
        packets = only_packets(batch).select(schemas.PACKETS.names)
        tally.add("packets", packets.num_rows)
        writer.write_batch(packets)
