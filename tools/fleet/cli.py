"""Audit captures of a whole fleet; simulate fleets to try it on."""

import contextlib
import math
import os
import re
import sys
import traceback
from pathlib import Path

import click

_YEAR_S = 366 * 86_400


class _Number(click.FloatRange):
    """A number in a range, which `nan` is not."""

    def convert(self, value, param, ctx):
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail("%r is no number" % value, param, ctx)
        return found


class _Memory(click.ParamType):
    """As Java takes it: a number and its unit."""

    name = "size"

    def convert(self, value, param, ctx):
        if not re.fullmatch(r"[1-9][0-9]*[kmgt]", value, re.IGNORECASE):
            self.fail("%r: write it as 3g or 900m" % value, param, ctx)
        return value


_PART, _SECONDS = _Number(0, 1), _Number(0, _YEAR_S)


@click.group()
def cli():
    """Audit captures of a fleet: which promise was kept, for which device, when."""


@cli.command()
@click.argument("captures", type=click.Path())
@click.option("--out", type=click.Path(file_okay=False), help="Folder for tables and report.")
@click.option("--ports", default="1883", show_default=True, help="TCP ports of MQTT.")
@click.option("--whole-files", is_flag=True, help="Every file holds whole connections (faster).")
@click.option("--exempt", multiple=True, metavar="FILTER", help="Topics without order.")
@click.option("--since", type=click.Path(file_okay=False), help="--out of an earlier audit.")
@click.option("--allow", multiple=True, metavar="NAME=NUMBER", help="So many are no failure.")
@click.option("--alert", metavar="COMMAND", help="Run for each finding, which it gets as JSON.")
@click.option("--master", help="Spark master; default local[*].")
@click.option(
    "--memory", default="3g", show_default=True, type=_Memory(), help="Memory of Spark's driver."
)
def audit(captures, out, ports, whole_files, exempt, since, allow, alert, master, memory):
    """Judge the captures under the folder CAPTURES; write Parquet tables and report.html under
    --out.

    Sub-folders of CAPTURES are sites.  --since shows what changed; --allow "lost=3" sets how
    many findings of a kind pass.  Exit code: 0 nothing found beyond what is allowed, 1
    findings, 2 nothing there that could be judged.
    """
    from . import batch
    from .places import place

    if out is None:
        raise click.UsageError("where to? OUT=folder (--out folder)")
    _check_ports(ports)
    _check_texts(captures=captures, out=out, since=since, alert=alert)
    _check_filters(exempt)
    with _verdict_or_reason():
        options = {"ports": ports, "whole_files": whole_files, "exempt": exempt}
        earlier = place(since) if since else None
        rest = (master, memory, earlier, allow, alert)
        sys.exit(batch.run(place(captures), place(out), options, *rest))


@cli.command()
@click.argument("source")
@click.option(
    "--out", required=True, type=click.Path(file_okay=False), help="Folder for tables and state."
)
@click.option("--once", is_flag=True, help="Read what is there to its end, then stop.")
@click.option("--ports", default="1883", show_default=True, help="TCP ports of MQTT.")
@click.option("--exempt", multiple=True, metavar="FILTER", help="Topics without order.")
@click.option("--allow", multiple=True, metavar="NAME=NUMBER", help="So many are no failure.")
@click.option("--alert", metavar="COMMAND", help="Run for each finding that there is more of.")
@click.option(
    "--trigger", default=5.0, show_default=True, type=_SECONDS, help="Seconds between batches."
)
@click.option(
    "--refresh", default=60.0, show_default=True, type=_SECONDS, help="Seconds between tables."
)
@click.option(
    "--settle",
    default=60.0,
    show_default=True,
    type=_SECONDS,
    help="Seconds until an untouched file is complete.",
)
@click.option("--buckets", default=16, show_default=True, type=click.IntRange(1, 4096))
@click.option("--master", help="Spark master; default local[*].")
@click.option(
    "--memory", default="3g", show_default=True, type=_Memory(), help="Memory of Spark's driver."
)
def stream(
    source,
    out,
    once,
    ports,
    exempt,
    allow,
    alert,
    trigger,
    refresh,
    settle,
    buckets,
    master,
    memory,
):
    """Follow SOURCE, a folder that grows or a broker as mqtt://user@host:port/filter.

    The tables under --out are those of `audit`, and so are report, --allow, --alert and exit
    code.  After a kill the same command goes on where it was.  A broker's password is read
    from FLEET_PASSWORD.
    """
    from . import batch, streaming

    _check_ports(ports)
    _check_texts(source=source, out=out, alert=alert)
    _check_filters(exempt)
    settings = streaming.Settings(source, ports, buckets)
    pace = streaming.Pace(trigger, refresh, settle)
    password = os.environ.get("FLEET_PASSWORD")
    with _verdict_or_reason():
        alarm = streaming.Alarm(batch.read_limits(allow), alert)
        sys.exit(streaming.run(settings, out, exempt, pace, once, master, memory, password, alarm))


@contextlib.contextmanager
def _verdict_or_reason():
    # Exit code 1 says that something was found: what fails has to end with another one.
    from . import batch

    try:
        yield
    except (batch.BadInput, OSError) as error:
        click.echo("Error: %s" % error, err=True)
    except click.ClickException:
        raise
    except Exception as error:
        traceback.print_exc()
        click.echo("Error: nothing was judged: %s" % batch.reason(error), err=True)
    sys.exit(batch.BAD_INPUT)


def _check_ports(ports):
    for port in ports.split(","):
        if not re.fullmatch(r"\s*[0-9]{1,5}\s*", port) or not 0 < int(port) < 65536:
            text = "%r is no TCP port: write 1883, or 1883,1884" % port
            raise click.BadParameter(text, param_hint="--ports")
    return {int(port) for port in ports.split(",")}


def _check_texts(**texts):
    # Of a variable that is not set, a shell makes an empty text.
    for name, text in texts.items():
        if text is not None and not text.strip():
            hint = name.upper() if name in ("captures", "folder", "source") else "--" + name
            raise click.BadParameter("is empty", param_hint=hint)


def _check_filters(filters):
    from .mqtt import is_filter

    for one in filters:
        if not is_filter(one):
            text = "%r is no filter of MQTT: + and # stand for whole levels, # is the last" % one
            raise click.BadParameter(text, param_hint="--exempt")


@cli.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path))
@click.option("--ports", default="1883", show_default=True, help="TCP ports of MQTT.")
def decode(folder, out, ports):
    """Write the packets of each capture under FOLDER to a Parquet file, without Spark."""
    from .capture import files
    from .convert import convert

    numbers = _check_ports(ports)
    if out.resolve().is_relative_to(folder.resolve()):
        raise click.BadParameter("must not be in the folder with the captures", param_hint="--out")
    errors = decoded = 0
    for source in files.survey(folder):
        if source.problem:
            click.echo("%s was not read: %s" % (source.capture, source.problem), err=True)
        if source.problem or files.is_json(source):
            continue
        target = out / (source.capture + ".parquet")
        target.parent.mkdir(parents=True, exist_ok=True)
        tally = convert(source, target, numbers)
        decoded += 1
        click.echo("%s: %d packets" % (source.capture, tally.counts.get("packets", 0)))
        for offset, text in tally.errors:
            errors += 1
            click.echo("%s: byte %d: %s" % (source.capture, offset, text), err=True)
    if not decoded:
        raise click.UsageError("no capture (.pcap, .pcapng, also compressed) under %s" % folder)
    sys.exit(1 if errors else 0)


@cli.command()
@click.argument("out", type=click.Path(dir_okay=False))
@click.option("--devices", default=100, show_default=True, type=click.IntRange(1, 1_000_000))
@click.option("--readings", default=10_000, show_default=True, type=click.IntRange(1))
@click.option(
    "--days",
    type=_Number(0, 36_600, min_open=True),
    help="Days of --interval, instead of --readings.",
)
@click.option(
    "--interval",
    default=60,
    show_default=True,
    type=click.IntRange(1, 86_400),
    help="Seconds between readings.",
)
@click.option("--seed", default=1, show_default=True)
@click.option("--faults", default=0.0, show_default=True, type=_PART, help="Faults per reading.")
@click.option("--kind", "kinds", multiple=True, help="Only these faults; see `kinds`.")
@click.option(
    "--rough",
    default=0.0,
    show_default=True,
    type=_PART,
    help="Part of the segments split, swapped, repeated.",
)
@click.option(
    "--gaps",
    default=0.0,
    show_default=True,
    type=_PART,
    help="Part of the PUBLISHes missing in the capture.",
)
@click.option("--level", "levels", multiple=True, type=click.IntRange(3, 5), help="MQTT levels.")
@click.option("--qos", type=click.IntRange(0, 2), help="QoS of all readings; default a mixture.")
@click.option(
    "--plain",
    default=0.0,
    show_default=True,
    type=_PART,
    help="Part of the devices that send plain values.",
)
@click.option(
    "--foreign",
    default=0.0,
    show_default=True,
    type=_PART,
    help="Part of these whose publisher is not captured.",
)
@click.option(
    "--subscriber-level",
    "watching",
    multiple=True,
    type=click.IntRange(3, 5),
    help="Its level; default 4.",
)
def simulate(
    out,
    devices,
    readings,
    days,
    interval,
    seed,
    faults,
    kinds,
    rough,
    gaps,
    levels,
    qos,
    plain,
    foreign,
    watching,
):
    """Write the traffic of a synthetic fleet to OUT (.pcap or .jsonl), and OUT.truth.json."""
    from .simulate.run import Plan, write

    if not out.endswith((".pcap", ".jsonl")):
        raise click.BadParameter("%r: end it with .pcap or .jsonl" % out, param_hint="OUT")
    if days:
        readings = max(1, int(devices * days * 86_400 / interval))
    plan = Plan(
        devices=devices,
        readings=readings,
        interval_s=interval,
        seed=seed,
        fault_rate=faults,
        wire_rate=rough,
        gap_rate=gaps,
        levels=levels or (3, 4),
        qos=qos,
        plain=plain,
        foreign=foreign,
        subscriber_levels=watching or (4,),
        **({"kinds": _known(kinds)} if kinds else {}),
    )
    with click.progressbar(length=readings, label="simulate", file=sys.stderr) as bar:
        truth = write(plan, Path(out), lambda done: bar.update(done - bar.pos))
    packets = sum(truth.packets.values())
    click.echo("%s: %d packets, %d readings" % (out, packets, truth.readings))


def _known(kinds):
    from .simulate.kinds import KINDS

    for kind in kinds:
        if kind not in KINDS:
            raise click.BadParameter("%r is none of %s" % (kind, ", ".join(KINDS)))
    return kinds


@cli.command()
def kinds():
    """List the faults that `simulate` knows."""
    from .simulate.kinds import KINDS

    for name, (function, *_) in KINDS.items():
        click.echo("%-22s %s" % (name, (function.__doc__ or "").strip().split("\n")[0]))


@cli.command()
@click.argument("path", type=click.Path(dir_okay=False), default="build/fleet.zip")
def package(path):
    """Write the pipeline as a zip file for a cluster's workers (docs/guides/fleet-cluster.md)."""
    from . import package as packing

    click.echo("%s: %d files" % (path, packing.write(Path(path))))


@cli.command()
@click.argument("measures", nargs=-1)
@click.option(
    "--folder", default="build/bench-fleet", show_default=True, help="Folder for captures."
)
@click.option("--packets", default=1_000_000, show_default=True, type=click.IntRange(10_000))
@click.option("--repeat", default=3, show_default=True, type=click.IntRange(1))
def bench(measures, folder, packets, repeat):
    """Measure speed and memory beside tshark and the budgets: all, or some MEASURES."""
    from .bench.measures import MEASURES, run

    for name in measures:
        if name not in MEASURES:
            raise click.BadParameter("%r is none of %s" % (name, ", ".join(MEASURES)))
    run(measures, folder, packets, repeat)
