"""Audit captures of a whole fleet."""

import contextlib
import gc
import math
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


@click.group()
def cli():
    """Audit captures of a fleet: which promise was kept, for which device, when."""


@cli.command()
@click.argument("captures", type=click.Path())
@click.option("--out", type=click.Path(file_okay=False), help="Folder for tables and report.")
@click.option("--ports", default="1883", show_default=True, help="TCP ports of MQTT.")
@click.option("--whole-files", is_flag=True, help="Every file holds whole connections (faster).")
@click.option("--exempt", multiple=True, metavar="FILTER", help="Topics without order.")
@click.option("--counter", multiple=True, metavar="FIELD", help="JSON field that counts readings.")
@click.option("--since", type=click.Path(file_okay=False), help="--out of an earlier audit.")
@click.option("--allow", multiple=True, metavar="NAME=NUMBER", help="So many are no failure.")
@click.option("--alert", metavar="COMMAND", help="Run for each finding, which it gets as JSON.")
@click.option("--every", type=_Number(1, _YEAR_S), help="Seconds; again when files changed.")
@click.option("--master", help="Spark master; default local[*].")
@click.option(
    "--memory", default="3g", show_default=True, type=_Memory(), help="Memory of Spark's driver."
)
def audit(
    captures, out, ports, whole_files, exempt, counter, since, allow, alert, every, master, memory
):
    """Judge the captures under the folder CAPTURES; write Parquet tables and report.html under
    --out.

    Sub-folders of CAPTURES are sites.  --since shows what changed; --allow "lost=3" sets how
    many findings of a kind pass; --every 60 goes on until it is interrupted.  Exit code: 0
    nothing found beyond what is allowed, 1 findings, 2 nothing there that could be judged.
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
        options |= {"counters": counter} if counter else {}
        earlier, limits = place(since) if since else None, batch.read_limits(allow)
        wish = batch.Wish(options, master, memory, earlier, limits, alert)
        sys.exit(batch.run(place(captures), place(out), wish, every))


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
    gc.disable()  # there is none, and all connections so far would be looked through for it
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
@click.argument("path", type=click.Path(dir_okay=False), default="build/fleet.zip")
def package(path):
    """Write the pipeline as a zip file for a cluster's workers (docs/guides/fleet-cluster.md)."""
    from . import package as packing

    click.echo("%s: %d files" % (path, packing.write(Path(path))))
