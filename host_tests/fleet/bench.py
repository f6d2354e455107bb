"""What a whole audit costs, from reading to report: `make bench-fleet [ARGS=small]`.

Each figure is CPU-seconds of all processes, Java and Python workers included, beside what
`tshark -T fields` needs for the same capture in the same run.  Nothing fails for being slow.
"""

import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import click

from host_tests.fleet.simulate.run import Plan, pcap

_FIELDS = (
    *("frame.time_epoch", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "mqtt.msgtype"),
    *("mqtt.qos", "mqtt.dupflag", "mqtt.retain", "mqtt.msgid", "mqtt.topic", "mqtt.len"),
)
_PACKETS_PER_READING = 4.85  # of a mixture of all QoS, published and forwarded
_LOOK_S = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
# Measure: (devices, part of the traffic in one client, times tshark wanted)
FLEETS = {
    "devices-1000": (1_000, 0.0, 2.5),
    "devices-10": (10, 0.0, 12),
    "devices-100000": (100_000, 0.0, 2.5),
    "heavy": (100, 0.95, 6),
}
SMALL_PACKETS, SMALL_S, SMALL_MB = 75, 6, 600


def capture(folder, packets, devices, heavy=0.0):
    """A folder that holds one simulated capture of about so many packets."""
    home = folder / ("fleet-%d-%d-%g" % (packets, devices, heavy))
    path = home / "fleet.pcap"
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        readings = int(packets / _PACKETS_PER_READING * (2 if heavy else 1))
        # The busy device's readings must not follow each other too closely.
        plan = Plan(devices, readings, 600 if heavy else 60, heavy=heavy, is_forwarded=not heavy)
        with path.with_suffix(".part").open("wb") as stream:
            pcap(plan, stream)
        path.with_suffix(".part").rename(path)
    return home


def cost(command):
    """-> (CPU-seconds, peak megabytes) of a command and all processes that it starts.

    Both are read while they run: Spark's workers are waited for by nobody.
    """
    used_s, peaks, ending = {}, [0], threading.Event()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def watch():
        while not ending.wait(_LOOK_S):
            tree = _tree(process.pid)
            peaks.append(sum(map(_kilobytes, tree)))
            for one, seconds in tree.items():  # 0 of one that has just ended
                used_s[one] = max(seconds, used_s.get(one, 0))

    thread = threading.Thread(target=watch)
    thread.start()
    told = process.communicate()[1]
    ending.set()
    thread.join()
    if process.returncode not in (0, 1):
        sys.exit(told.decode())
    return sum(used_s.values()), max(peaks) / 1024


def _tree(pid):
    # {process: CPU-seconds so far} of a process and all below it.
    children, used_s = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            one = int(path.parent.name)
            children.setdefault(int(fields[1]), []).append(one)
            used_s[one] = (int(fields[11]) + int(fields[12])) / _TICKS
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return {one: used_s.get(one, 0) for one in found}


def _kilobytes(pid):
    # Memory that several processes share counts once.
    with suppress(OSError):
        for line in Path("/proc/%d/smaps_rollup" % pid).read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0


def _tshark(home):
    command = ["tshark", "-r", str(home / "fleet.pcap"), "-Y", "mqtt", "-T", "fields"]
    command += ["-o", "tcp.reassemble_out_of_order:TRUE"]
    return command + [part for field in _FIELDS for part in ("-e", field)]


def _ours(name, home, out):
    return [sys.executable, "-m", "tools", "fleet", name, str(home), "--out", str(out)]


def fleet(name, folder, packets, out):
    """One line: audit and decoding of a fleet beside tshark."""
    devices, heavy, wanted = FLEETS[name]
    home = capture(folder, packets, devices, heavy)
    theirs, _ = cost(_tshark(home))
    audit_s, audit_mb = cost(_ours("audit", home, out / "tables"))
    decode_s, decode_mb = cost(_ours("decode", home, out / "packets"))
    text = "%s: tshark %.1f s; audit %.1f s = %.1f times as fast (wanted %g), %d MB; "
    text += "decode %.1f s = %.1f times, %d MB"
    figures = (theirs, audit_s, theirs / audit_s, wanted, audit_mb)
    return text % (name, *figures, decode_s, theirs / decode_s, decode_mb)


def small(folder, out):
    """One line: what an audit of next to nothing costs."""
    used_s, megabytes = cost(_ours("audit", capture(folder, SMALL_PACKETS, 2), out / "tables"))
    text = "small: %d packets in %.1f CPU-seconds (wanted %d) and %d MB (wanted %d)"
    return text % (SMALL_PACKETS, used_s, SMALL_S, megabytes, SMALL_MB)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([*FLEETS, "small"]))
@click.option("--folder", default="build/bench-fleet", type=click.Path(path_type=Path))
@click.option("--packets", default=1_000_000, show_default=True, type=click.IntRange(1_000))
def main(names, folder, packets):
    """Measure all, or some NAMES, in CPU-seconds of all processes."""
    for name in names or ("small", *FLEETS):
        with tempfile.TemporaryDirectory() as out:
            many = (name, folder, packets, Path(out))
            click.echo(small(folder, Path(out)) if name == "small" else fleet(*many))


if __name__ == "__main__":
    main()
