"""The audit as a command: checks what it is given, shows progress, says what it found."""

import contextlib
import sys

import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

CLEAN, FINDINGS, BAD_INPUT = 0, 1, 2
_MOST_LINES = 20
_NOTES = {
    "ENCRYPTED": "%d connections are encrypted (TLS) and were not judged (%d bytes seen)",
    "UNREAD": "%d connections begin with, or go on behind damage with, %d bytes not understood",
    "NOT_MQTT": "%d connections on the ports given are no MQTT (%d bytes seen)",
}


class BadInput(Exception):
    """There is nothing that could be judged; the text says what to do."""


def run(folder, out, options, master=None, memory="3g"):
    """Audit `folder` into `out` and show what was found -> exit code."""
    spark, result = audit(folder, out, options, master, memory)
    from .spark import job

    console = Console(stderr=True, highlight=False)
    captures = job.load(spark, out, "captures")
    _show(console, result, captures.select("capture").distinct().count())
    _show_errors(console, captures)
    _show_unread(console, out)
    console.print("report: %s" % (out / "report.html"), soft_wrap=True)
    if not result.rows["packets"]:
        print("no MQTT packet in %s: check --ports and the captures" % folder, file=sys.stderr)
        return BAD_INPUT
    return FINDINGS if any(result.findings.values()) else CLEAN


def audit(folder, out, options, master=None, memory="3g"):
    """Audit `folder` into `out`, report included -> (session, `outcome.Result`).

    `options` are those of `job.Options`.  Raises BadInput.
    """
    _check(folder, out)
    from .report import collect, page
    from .spark import job, session

    try:
        spark = session.start(master, memory)
    except session.NoJava as error:
        raise BadInput(str(error))
    out.mkdir(parents=True, exist_ok=True)
    options = job.Options(**options)
    with _progress() as step:
        result = job.run(spark, folder, out, options, step)
        page.write(collect.collect(spark, out, result), out / "report.html")
    return spark, result


def _check(folder, out):
    from .capture import files

    if not folder.exists():
        raise BadInput("%s does not exist: name a folder with captures" % folder)
    if out.resolve().is_relative_to(folder.resolve()):
        raise BadInput("--out must not be in the folder with the captures")
    if not files.find(folder):
        raise BadInput("no capture (.pcap, .pcapng, .jsonl, also compressed) under %s" % folder)


@contextlib.contextmanager
def _progress():
    columns = (TextColumn("audit"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("audit", total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _show(console, result, count):
    table = Table(title="%d captures" % count, title_justify="left")
    table.add_column("table")
    table.add_column("rows", justify="right")
    for name, rows in result.rows.items():
        table.add_row(name, f"{rows:,}")
    console.print(table)
    table = Table(title="findings", title_justify="left")
    table.add_column("what")
    table.add_column("number", justify="right")
    for name, number in result.findings.items():
        style = "bold red" if number else None
        table.add_row(name, f"{number:,}", style=style)
    console.print(table)


def _show_errors(console, captures):
    errors = captures.where("counter = 'error'").orderBy("capture", "offset").limit(20)
    for row in errors.collect():
        text = "%s: byte %d: %s" % (row.capture, row.offset, row.detail)
        console.print(text, style="yellow", soft_wrap=True, markup=False)


def _show_unread(console, out):
    # What is in the folder and in no table, with the reason.
    unread = pq.read_table(out / "captures", filters=[("counter", "=", "not_read")])
    rows = unread.select(["capture", "detail"]).to_pylist()
    for row in rows[:_MOST_LINES]:
        text = "%s was not read: %s" % (row["capture"], row["detail"])
        console.print(text, style="yellow", soft_wrap=True, markup=False)
    if len(rows) > _MOST_LINES:
        console.print("and %d files more" % (len(rows) - _MOST_LINES), style="yellow")
    gaps = pq.read_table(out / "gaps", columns=["kind", "connection", "bytes"])
    for kind, text in _NOTES.items():
        some = gaps.filter(pc.equal(gaps["kind"], kind))
        if some.num_rows:
            number = pc.count_distinct(some["connection"]).as_py()
            console.print(text % (number, pc.sum(some["bytes"]).as_py()), style="yellow")
