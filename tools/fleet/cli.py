"""Audit captures of a whole fleet."""

import contextlib
import gc
import re
import sys
import traceback
from pathlib import Path

import click

from .mqtt import is_filter

_YEAR_S = 366 * 86_400


def _such(is_good, what):
    # The type of an option: a text that is such.
    def checked(text):
        if not is_good(text):
            raise click.BadParameter(what.format(text))
        return text

    return checked


def _are_ports(text):
    ports = re.fullmatch(r"(\s*[0-9]{1,5}\s*,)+", text + ",")
    return ports and all(0 < int(one) < 65536 for one in text.split(","))


def _is_time(text):
    return re.fullmatch(r"[0-9.e+]+", text) and 1 <= float(text) <= _YEAR_S


# A shell passes an empty text for a variable that is not set.
_text = _such(str.strip, "is empty")
_ports = _such(_are_ports, "{!r} is no TCP port: write 1883, or 1883,1884")
_filter = _such(is_filter, "{!r} is no filter: + and # stand for whole levels, # is the last")
_seconds = _such(_is_time, "{} is no number in the range from 1 to %d" % _YEAR_S)
_memory = _such(re.compile("[1-9][0-9]*[kmgtKMGT]").fullmatch, "{!r}: write it as 3g or 900m")


def _option(name, told, **more):
    return click.option(name, help=told, show_default="default" in more, **more)


_PORTS = _option("--ports", "TCP ports of MQTT.", default="1883", type=_ports, metavar="TEXT")


class _Captures(click.Argument):
    def get_error_hint(self, ctx):
        return super().get_error_hint(ctx) + " (with make: CAPTURES=…)"


@contextlib.contextmanager
def _verdict_or_reason():
    # Exit code 1 means findings, so a failure needs another one.
    from . import batch

    try:
        yield
    except (batch.BadInput, OSError) as error:
        click.echo("Error: %s" % error, err=True)
    except KeyboardInterrupt:
        click.echo("Error: interrupted", err=True)
    except click.ClickException:
        raise
    except Exception as error:
        traceback.print_exc()
        click.echo("Error: nothing was judged: %s" % batch.reason(error), err=True)
    sys.exit(batch.BAD_INPUT)


@click.group()
def cli():
    """Audit captures of a fleet: which promise was kept, for which device, when."""


@cli.command()
@click.argument("captures", cls=_Captures, type=_text)
@_option("--out", "Folder for tables and report.", type=click.Path(file_okay=False))
@_PORTS
@_option("--whole-files", "Every file holds whole connections (faster).", is_flag=True)
@_option("--exempt", "Topics without order.", type=_filter, multiple=True, metavar="FILTER")
@_option("--counter", "Field that counts readings.", multiple=True, type=_text, metavar="FIELD")
@_option("--since", "--out of an earlier audit.", type=_text, metavar="DIRECTORY")
@_option("--allow", "So many are no failure.", multiple=True, metavar="NAME=NUMBER")
@_option("--alert", "Run for each finding, which it gets as JSON.", type=_text, metavar="COMMAND")
@_option("--every", "Seconds; again when files changed.", type=_seconds, metavar="SECONDS")
@_option("--master", "Spark master; default local[*].")
@_option("--memory", "Memory of Spark's driver.", default="3g", type=_memory, metavar="SIZE")
@_verdict_or_reason()
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

    if not (out or "").strip():
        raise click.UsageError("where to? OUT=folder (--out folder)")
    options = {"ports": ports, "whole_files": whole_files, "exempt": exempt}
    options |= {"counters": counter} if counter else {}
    earlier, limits = place(since) if since else None, batch.read_limits(allow)
    wish = batch.Wish(options, master, memory, earlier, limits, alert)
    sys.exit(batch.run(place(captures), place(out), wish, every and float(every)))


@cli.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path))
@_PORTS
@_verdict_or_reason()
def decode(folder, out, ports):
    """Write the packets of each capture under FOLDER to a Parquet file, without Spark."""
    from .capture import files

    if out.resolve().is_relative_to(folder.resolve()):
        raise click.BadParameter("must not be in the folder with the captures", param_hint="--out")
    gc.disable()  # there is no garbage, but the collector would look at all connections so far
    found = [one for one in files.survey(folder) if one.problem or not files.is_json(one)]
    for source in found:
        if source.problem:
            click.echo("%s was not read: %s" % (source.capture, source.problem), err=True)
    tallies = [_decode(one, out, ports) for one in found if not one.problem]
    if not tallies:
        raise click.UsageError("no capture (.pcap, .pcapng, also compressed) under %s" % folder)
    sys.exit(1 if any(tally.errors for tally in tallies) else 0)


def _decode(source, out, ports):
    import pyarrow.parquet as pq

    from . import schemas, tables
    from .capture.frames import Tally
    from .decode.decoder import decoded, only_packets

    tally, schema = Tally(), schemas.CODED_PACKETS
    target = out / (source.capture + ".parquet")
    target.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(target, schema, **tables.options(schema)) as writer:
        for batch in decoded(source, {int(port) for port in ports.split(",")}, tally):
            packets = only_packets(batch).select(schema.names)
            tally.add("packets", packets.num_rows)
            writer.write_batch(packets)
    click.echo("%s: %d packets" % (source.capture, tally.counts.get("packets", 0)))
    for offset, text in tally.errors:
        click.echo("%s: byte %d: %s" % (source.capture, offset, text), err=True)
    return tally


@cli.command()
@click.argument("path", type=click.Path(dir_okay=False), default="build/fleet.zip")
def package(path):
    """Write the pipeline as a zip file for a cluster's workers (docs/guides/fleet-cluster.md)."""
    from .spark import engine

    click.echo("%s: %d files" % (path, engine.package(Path(path))))
