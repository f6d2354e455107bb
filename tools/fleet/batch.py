"""The audit as a command: checks what it is given, shows progress, says what it found."""

import contextlib
import json
import re
import subprocess
import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from . import places

CLEAN, FINDINGS, BAD_INPUT = 0, 1, 2
_MOST_LINES = 20
_NAMED = re.compile(r"(Caused by: )?[\w.$]*(Error|Exception): .")
_ENDED = re.compile(r"terminated with exception: (.+?)\.?( SQLSTATE: \w+)?$")
_ALERT_S = 60  # a command that hangs must not keep an audit from ending


class BadInput(Exception):
    """There is nothing that could be judged; the text says what to do."""


def run(folder, out, options, master=None, memory="3g", since=None, allow=(), alert=None):
    """Audit `folder` into `out` and show what was found -> exit code.

    `since` is the folder of an earlier audit to compare with, `allow` texts such as
    "lost messages=3": findings up to these numbers are no reason for exit code 1.  For each
    of the others `alert`, a command of the shell, is run.
    """
    limits = read_limits(allow)
    if any(places.is_remote(one) for one in (folder, out, since)):
        start(master, memory)  # without Java nobody can look there
    with alone(out):
        _, result = audit(folder, out, options, master, memory, since, limits)
        console = Console(stderr=True, highlight=False)
        _show(console, result, limits)
        show_rest(console, result.folder)
        if result.folder != out:
            return _left(folder, out)
    console.print("report: %s" % (out / "report.html"), soft_wrap=True)
    if not result.rows["packets"]:
        print("no MQTT packet in %s: check --ports and the captures" % folder, file=sys.stderr)
        return BAD_INPUT
    over = too_many(result.findings, limits)
    if alert:
        tell(alert, over, limits, out)
    return FINDINGS if over else CLEAN


def _left(folder, out):
    # The tables of the audit before stay: there is nothing that could take their place.
    from .spark import job

    job.discard(out)
    text = "no MQTT packet in %s: check --ports and the captures; %s is left as it was"
    print(text % (folder, out), file=sys.stderr)
    return BAD_INPUT


def audit(folder, out, options, master=None, memory="3g", since=None, limits=None):
    """Audit `folder` into `out`, report included -> (session, `outcome.Result`).

    `options` are those of `job.Options`, `limits` {finding: how many}.  Raises BadInput.
    """
    from .report import collect, metrics, page
    from .spark import job

    _check(folder, out)
    before = _earlier(since) if since else None

    def report(result, folder):
        page.write(collect.collect(folder, result, before, limits), folder / "report.html")
        metrics.write(result, folder)
        return "report.html", metrics.NAME

    with _progress() as step:
        spark = start(master, memory)
        out.mkdir(parents=True, exist_ok=True)
        try:
            result = job.run(spark, folder, out, job.Options(**options), step, report)
        except BaseException:
            job.discard(out)
            raise
    return spark, result


def _earlier(since):
    from .report import collect

    try:
        return collect.earlier(since)
    except collect.NoAudit as error:
        raise BadInput("--since: %s" % error)


@contextlib.contextmanager
def alone(out):
    """The folder `out`, for one audit or stream at a time.  Raises BadInput."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(places.held(out))
        except BlockingIOError:
            raise BadInput("another audit or stream writes to %s: wait for it" % out) from None
        yield


def start(master, memory):
    """The session of Spark.  Raises BadInput when it does not start."""
    from .spark import engine

    try:
        return engine.start(master, memory)
    except engine.NotStarted as error:
        raise BadInput(str(error))


def reason(error):
    """The line of an error's text that says what went wrong: Spark puts plans behind it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if _NAMED.match(line)]
    ended = [found[1] for found in map(_ENDED.search, lines) if found]
    return (named or ended or lines or [repr(error)])[-1].removeprefix("Caused by: ")


def read_limits(texts):
    """{finding: how many are allowed} of texts such as "lost messages=3"."""
    from .outcome import findings

    known = findings({})
    limits = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        wanted = name.strip().lower()
        found = [one for one in known if one.lower().startswith(wanted)] if wanted else []
        if len(found) != 1 or not re.fullmatch("[0-9]{1,15}", number.strip()):
            raise BadInput(
                "--allow %s: write NAME=NUMBER, NAME one of: %s" % (text, ", ".join(known))
            )
        limits[found[0]] = int(number)
    return limits


def too_many(findings, limits):
    """The findings of which there are more than allowed."""
    return {name: n for name, n in findings.items() if n > limits.get(name, 0)}


def tell(command, over, limits, out):
    """Run `command` once for each finding, which it gets as a line of JSON -> those told.

    What keeps it from working is said.
    """
    told = {}
    for name, number in over.items():
        allowed = limits.get(name, 0)
        fields = {"finding": name, "number": number, "allowed": allowed}
        line = json.dumps(fields | {"report": str((out / "report.html").resolve())}) + "\n"
        try:
            subprocess.run(
                command, shell=True, input=line, text=True, check=True, timeout=_ALERT_S
            )
            told[name] = number
        except subprocess.CalledProcessError as error:
            print("the command of --alert failed: %d" % error.returncode, file=sys.stderr)
        except subprocess.TimeoutExpired:
            print("the command of --alert was ended after %d s" % _ALERT_S, file=sys.stderr)
    return told


def _check(folder, out):
    from .capture import files
    from .spark import stream

    if not folder.exists():
        raise BadInput("%s does not exist: name a folder with captures" % folder)
    if places.is_within(out, folder):
        raise BadInput("%s is in the folder with the captures: name another one for OUT" % out)
    if stream.state_folder(out).is_dir():
        raise BadInput("%s belongs to `fleet stream`: name another folder for OUT" % out)
    if not any(files.checked(source).problem is None for source in files.listed(folder)):
        raise BadInput("no capture (.pcap, .pcapng, .jsonl, also compressed) under %s" % folder)


@contextlib.contextmanager
def _progress():
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[done]}"))
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("starting Spark", total=None, done="")

        def step(done, total):
            if total:
                text = "%d of %d tasks" % (done, total)
                progress.update(task, description="audit", completed=done, total=total, done=text)

        yield step


def _show(console, result, limits):
    table = Table(title="tables", title_justify="left")
    table.add_column("table")
    table.add_column("rows", justify="right")
    for name, rows in result.rows.items():
        table.add_row(name, f"{rows:,}")
    console.print(table)
    table = Table(title="findings", title_justify="left")
    for column in ("what", "number", "allowed"):
        table.add_column(column, justify="left" if column == "what" else "right")
    over = too_many(result.findings, limits)
    for name, number in result.findings.items():
        allowed = f"{limits[name]:,}" if name in limits else ""
        table.add_row(name, f"{number:,}", allowed, style="bold red" if name in over else None)
    console.print(table)


def show_rest(console, out):
    """Print what is in the folder and in no table, and what is damaged, with its reason."""
    from .report import collect

    captures = collect.read(out, "captures").to_pylist()
    lines = []
    for row in captures:
        if row["counter"] == "not_read":
            lines.append("%s was not read: %s" % (row["capture"], row["detail"]))
        elif row["counter"] == "error":
            lines.append("%s: byte %d: %s" % (row["capture"], row["offset"], row["detail"]))
    lines.sort()
    for text in collect.notes(out) + lines[:_MOST_LINES]:
        console.print(text, style="yellow", soft_wrap=True, markup=False)
    if len(lines) > _MOST_LINES:
        more = len(lines) - _MOST_LINES
        console.print("and %d lines more, in the table captures" % more, style="yellow")
