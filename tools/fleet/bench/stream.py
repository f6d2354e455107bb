"""How many packets a second the stream takes, and what a refresh of the tables costs.

    python -m tools.fleet.bench.stream [--clients 20000] [--readings 400000]

A simulated capture is there in full; batches take it piece by piece.  The first batch
is left out: it starts Python's workers.
"""

import statistics
import tempfile
import time
from pathlib import Path

import click

from ..simulate.run import Plan, write

BUDGET_ROWS_S = 200_000


@click.command()
@click.option("--clients", default=20_000, show_default=True)
@click.option("--readings", default=400_000, show_default=True)
@click.option("--batch-mb", default=48, show_default=True, help="of capture in one batch")
@click.option("--buckets", default=4, show_default=True)
@click.option("--master", default="local[2]", show_default=True)
def main(clients, readings, batch_mb, buckets, master):
    """Measure the streaming job on a simulated fleet."""
    with tempfile.TemporaryDirectory() as folder:
        captures, out = Path(folder) / "captures", Path(folder) / "out"
        captures.mkdir()
        plan = Plan(devices=clients, readings=readings, seed=1)
        truth = write(plan, Path(folder) / "a.pcap")
        (Path(folder) / "a.pcap").rename(captures / "a.pcap")
        total = sum(truth.packets.values())
        batches, refresh_s = _measure(captures, out, batch_mb << 20, buckets, master)
    rates = [rows / seconds for rows, seconds in batches[1:]]
    click.echo("%d packets of %d clients, %s" % (total, clients, master))
    for rows, seconds in batches:
        click.echo("  batch: %7d rows in %5.1f s" % (rows, seconds))
    rate = statistics.median(rates)
    click.echo("stream: %d rows/s (median), budget %d" % (rate, BUDGET_ROWS_S))
    click.echo("refresh of all tables: %.1f s, %d rows/s" % (refresh_s, total / refresh_s))


def _measure(captures, out, batch_bytes, buckets, master):
    from ..spark import engine, stream

    spark = engine.start(master)
    for one in stream.sources():
        spark.dataSource.register(one)
    target = stream.Stream(spark, out, buckets)
    ends = [time.monotonic()]
    counts = []

    def take(frame, number):
        target.take(frame, number)
        ends.append(time.monotonic())
        part = out / "packets" / ("part=%08d" % number)
        counts.append(_rows(part))

    reader = spark.readStream.format("mqtt_growing").option("path", str(captures))
    reader = reader.options(buckets=buckets, maxbytes=batch_bytes, rangebytes=batch_bytes // 2)
    writer = reader.load().writeStream.foreachBatch(take)
    state = stream.state_folder(out) / "checkpoint"
    query = writer.option("checkpointLocation", str(state)).start()
    query.processAllAvailable()
    query.stop()
    # From the end of one batch to the end of the next, so that planning counts too.
    seconds = [end - begin for begin, end in zip(ends, ends[1:], strict=False)]
    begin = time.monotonic()
    target.refresh()
    return list(zip(counts, seconds, strict=True)), time.monotonic() - begin


def _rows(folder):
    import pyarrow.dataset

    return pyarrow.dataset.dataset(folder, format="parquet").count_rows()


if __name__ == "__main__":
    main()
