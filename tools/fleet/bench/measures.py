"""Speed and memory of the pipeline beside tshark and the budgets, in one run.

Every figure is the median of several runs of a whole process or Spark action.  A rate
alone says little, as the same code is twice as fast on another computer: each is also a
multiple of the packets a second that `tshark -T fields` reads of the same capture on one
core in the same run.  Nothing fails for being slow; the table shows both sides.
"""

import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

_FIELDS = (
    *("frame.time_epoch", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "mqtt.msgtype"),
    *("mqtt.qos", "mqtt.dupflag", "mqtt.retain", "mqtt.msgid", "mqtt.topic", "mqtt.len"),
)
_TSHARK_RUNS = 2
_LEAST_AUDITS = 9  # half a second each, on all cores: the median of three varies by 8 %
_WARM_UP_RUNS = 3  # Java compiles what has run often, and workers fill their memory
_PACKETS_PER_READING = 4.85  # of a mixture of all QoS, published and forwarded


class Bench:
    """Captures to measure on, made once in `folder`, and the figures so far."""

    def __init__(self, folder, packets, repeat):
        self.folder = folder
        self.packets = packets
        self.repeat = repeat
        self.rows = []
        self._tshark_s = {}
        folder.mkdir(parents=True, exist_ok=True)

    def capture(self, packets, devices=1000, heavy=0.0):
        """A folder that holds one simulated capture of about so many packets."""
        home = self.folder / ("fleet-%d-%d-%g" % (packets, devices, heavy))
        path = home / "fleet.pcap"
        if not path.exists():
            from ..simulate.run import Plan, pcap

            home.mkdir(exist_ok=True)
            readings = int(packets / _PACKETS_PER_READING * (2 if heavy else 1))
            # The busy device's readings must not follow each other too closely.
            interval_s = 600 if heavy else 60
            plan = Plan(devices, readings, interval_s, heavy=heavy, is_forwarded=not heavy)
            begin = time.perf_counter()
            with path.with_suffix(".part").open("wb") as stream:
                truth = pcap(plan, stream)
            path.with_suffix(".part").rename(path)
            rate = sum(truth.packets.values()) / (time.perf_counter() - begin)
            if packets >= 1_000_000 and devices == 1_000:
                self.add("simulate", f"{rate:,.0f} packets/s", "≥ 150,000")
        return home

    def median(self, action, least=1):
        """Median seconds of `action` over the repeats, `least` of them."""
        times = []
        for _ in range(max(self.repeat, least)):
            begin = time.perf_counter()
            action()
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    def tshark_s(self, folder):
        """Seconds that `tshark -T fields` takes for the capture of `folder`, on one core."""
        if folder not in self._tshark_s:
            path = folder / "fleet.pcap"
            times = [_once(lambda: _tshark(path, "fields")) for _ in range(_TSHARK_RUNS)]
            self._tshark_s[folder] = statistics.median(times)
        return self._tshark_s[folder]

    def add_rate(self, what, rows, seconds, folder, budget):
        """A line with `rows` in `seconds`, also as a multiple of tshark's rate."""
        times = self.tshark_s(folder) / seconds
        text = f"{rows / seconds:,.0f} rows/s = {times:.1f} times tshark -T fields"
        self.add(what, text, budget)

    def add(self, what, measured, budget=""):
        """A line of the table, shown at once too."""
        self.rows.append((what, measured, budget))
        print("%s: %s  (%s)" % (what, measured, budget), file=sys.stderr)


def _pinned(command, core=0):
    # On one core, as one process of a batch of many would run.
    def pin():
        os.sched_setaffinity(0, {core})

    null = subprocess.DEVNULL
    subprocess.run(command, check=True, preexec_fn=pin, stdout=null, stderr=null)


def _tshark(path, form):
    command = ["tshark", "-r", str(path), "-o", "tcp.reassemble_out_of_order:TRUE", "-Y", "mqtt"]
    command += ["-T", form]
    if form == "fields":
        for field in _FIELDS:
            command += ["-e", field]
    _pinned(command)


def _decode(folder, out, core=0):
    command = [sys.executable, "-m", "tools", "fleet", "decode", str(folder), "--out", str(out)]
    _pinned(command, core)


def decode(bench):
    """One pinned core, whole files to Parquet, beside tshark; pcapng beside pcap."""
    for devices in (1_000, 100_000):
        folder = bench.capture(bench.packets, devices)
        ours = bench.median(partial(_decode, folder, bench.folder / "decoded"))
        bench.add(f"decode, one core, {devices:,} devices", "%.2f s" % ours, "")
        fields = bench.tshark_s(folder)
        text = "%.1f s = %.1f times ours" % (fields, fields / ours)
        bench.add("tshark -T fields", text, "≥ 6 times")
    folder = bench.capture(bench.packets)
    plain = bench.median(lambda: _decode(folder, bench.folder / "decoded"))
    ek = _once(lambda: _tshark(folder / "fleet.pcap", "ek"))
    bench.add("tshark -T ek", "%.1f s = %.1f times ours" % (ek, ek / plain), "≥ 30 times")
    blocks = _as_pcapng(folder)
    ours = bench.median(lambda: _decode(blocks, bench.folder / "decoded"))
    text = "%.2f s = %.2f times pcap" % (ours, ours / plain)
    bench.add("decode, one core, pcapng", text, "≤ 1.2 times")


def _as_pcapng(folder):
    # The same capture as dumpcap would have written it.
    target = folder.with_name(folder.name + "-ng")
    target.mkdir(exist_ok=True)
    path = target / "fleet.pcapng"
    if not path.exists():
        command = ["editcap", "-F", "pcapng", str(folder / "fleet.pcap"), str(path)]
        subprocess.run(command, check=True)
    return target


def small(bench):
    """What an audit of one small capture costs in all, its processes added up."""
    folder = bench.capture(1_500, 20)
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime)"
    )
    command = [sys.executable, "-m", "tools.fleet.bench.one_audit", str(folder)]
    done = subprocess.run(
        [sys.executable, "-c", script, *command], check=True, stdout=subprocess.PIPE, text=True
    )
    bench.add("audit of one small capture", "%.1f CPU-seconds" % float(done.stdout), "≤ 15")


def _once(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def memory(bench):
    """Peak memory of decoding, 1 and 10 times the packets."""
    peaks = []
    for times in (1, 10):
        folder = bench.capture(bench.packets * times)
        script = (
            "import resource, sys; from pathlib import Path\n"
            "from tools.fleet.capture import files\n"
            "from tools.fleet.convert import convert\n"
            "for one in files.find(sys.argv[1]): convert(one, sys.argv[2], {1883})\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        out = str(bench.folder / "memory.parquet")
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder), out],
            check=True,
            capture_output=True,
            text=True,
        )
        peaks.append(int(done.stdout) / 1024)
    text = "%.0f MB, with ten times the packets %.0f MB" % tuple(peaks)
    bench.add("peak memory of decoding", text, "flat")


def _spark(cores):
    from ..spark import engine

    return engine.start("local[%d]" % cores, partitions=cores)


def shuffle(bench):
    """One large pcap through the shuffle to Parquet, two cores."""
    from ..spark import job

    folder = bench.capture(bench.packets)
    spark = _spark(2)

    def run():
        options = job.Options(range_bytes=16 << 20)
        _write_packets(spark, folder, options, bench.folder / "shuffled")

    run()  # the first run starts Python workers and compiles
    ours = bench.median(run)
    fields = bench.tshark_s(folder)
    text = "%.2f s, tshark -T fields %.1f times" % (ours, fields / ours)
    bench.add("one pcap through the shuffle, two cores", text, "≥ 8 times")
    spark.stop()


def cores(bench):
    """The same on one pinned core and on two, five times the packets."""
    folder = bench.capture(bench.packets * 5)
    times = {}
    for count in (1, 2):
        script = (
            "import os, sys, time\n"
            "os.sched_setaffinity(0, set(range(%d)))\n"
            "from tools.fleet.bench.measures import time_shuffle\n"
            "print(time_shuffle(%d, sys.argv[1], sys.argv[2]))" % (count, count)
        )
        command = [sys.executable, "-c", script, str(folder), str(bench.folder / "cores")]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        times[count] = float(done.stdout.split()[-1])
    text = "%.1f s and %.1f s: %.2f times" % (times[1], times[2], times[1] / times[2])
    bench.add("one core and two, through the shuffle", text, "≥ 1.8 times")
    bench.add("two processes that share nothing", "%.2f times" % _side_by_side(bench), "the limit")


def _side_by_side(bench):
    # What two cores of this computer give when nothing in the program is in the way.
    folder = bench.capture(bench.packets)

    def on(core):
        _decode(folder, bench.folder / ("decoded-%d" % core), core)

    def both():
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(on, (0, 1)))

    return 2 * bench.median(lambda: on(0)) / bench.median(both)


def time_shuffle(count, folder, out):
    """Seconds to take the captures of `folder` through the shuffle to Parquet."""
    from ..spark import job

    spark = _spark(count)

    def run():
        _write_packets(spark, folder, job.Options(range_bytes=32 << 20, buckets=8), Path(out))

    run()
    return _once(run)


def _write_packets(spark, folder, options, out):
    from ..spark import job, tables, transforms

    sink = tables.Sink(str(out), ("packets",))
    with job.shelf(spark) as shelf:
        events, _ = job.read(spark, folder, options, shelf)
        told = transforms.packets(events, sink).toArrow()
        tables.publish(sink, told)


def audit(bench):
    """Rows a second of judging, from few clients to many, and one that sends nearly all."""
    spark = _spark(2)
    for devices, budget in ((10, 35), (1_000, 35), (100_000, 28)):
        folder = bench.capture(bench.packets, devices)
        rows, seconds = _audit_time(bench, spark, folder)
        what = f"audit of {devices:,} devices"
        bench.add_rate(what, rows, seconds, folder, f"≥ {budget} times")
    folder = bench.capture(bench.packets, 100, heavy=0.95)
    rows, seconds = _audit_time(bench, spark, folder)
    what = "audit, 95 % of the traffic in one client"
    bench.add_rate(what, rows, seconds, folder, "≥ 25 times")
    spark.stop()


def _audit_time(bench, spark, folder):
    # -> (rows, seconds) from packed events to all that is found; without reading, writing.
    from pyspark import StorageLevel

    from .. import schemas
    from ..spark import job, transforms

    with job.shelf(spark) as shelf:
        events, buckets = job.read(spark, folder, job.Options(), shelf)
        events = events.persist(StorageLevel.DISK_ONLY)
        rows = transforms.table(events, "events", schemas.EVENTS).count()
        later = job.count_later_buckets(buckets, spark.sparkContext.defaultParallelism)

        def run():
            judged = transforms.judge(events, buckets, later, shelf=shelf)
            transforms.relate(judged, later, shelf=shelf).count()

        for _ in range(_WARM_UP_RUNS):
            run()
        seconds = bench.median(run, _LEAST_AUDITS)
        events.unpersist()
    return rows, seconds


def stream(bench):
    """Rows a second of the stream, in a process of its own."""
    command = [sys.executable, "-m", "tools.fleet.bench.stream"]
    command += ["--readings", str(int(bench.packets * 2 / _PACKETS_PER_READING))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("stream: "))
    bench.add("stream, 20,000 clients", line.split("(")[0][len("stream: ") :], "≥ 200,000 rows/s")


MEASURES = {
    "decode": decode,
    "small": small,
    "memory": memory,
    "shuffle": shuffle,
    "cores": cores,
    "audit": audit,
    "stream": stream,
}


def run(names, folder, packets, repeat):
    """Measure these, or all, and print the table."""
    bench = Bench(Path(folder), packets, repeat)
    for name in names or MEASURES:
        MEASURES[name](bench)
    table = Table(title=f"{packets:,} packets, medians of {repeat} and more")
    for column in ("what", "measured", "budget"):
        table.add_column(column)
    for row in bench.rows:
        table.add_row(*row)
    Console().print(table)
