"""The audit as a command: checks what it is given, shows progress, says what it found."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from . import outcome, places, schemas, tables
from .capture import files, link
from .capture.frames import Tally
from .places import Remote
from .report import collect, page

CLEAN, FINDINGS, BAD_INPUT = 0, 1, 2
_LOCK = ".held"  # Spark, pandas and pyarrow pass over names with a dot
# What may be in the folders of tables, which are replaced: files of ours and of other programs.
_REPLACED = (".parquet", ".crc", "_SUCCESS", ".DS_Store")
_MOST_LINES = 20
_NAMED = re.compile(r"(Caused by: )?[\w.$]*(Error|Exception): .")
_LOOKED_AT, _OTHER = 4, "mqtt_on_port_"
_ALERT_S = 60  # a command that hangs must not stop the audit


class BadInput(Exception):
    """There is nothing that could be judged; the text says what to do."""


@dataclass(frozen=True)
class Wish:
    """How to audit and what to tell of it, as the options of `cli.audit` with these names.

    `limits`: {finding: how many are no reason for exit code 1}.
    """

    options: dict = field(default_factory=dict)
    master: str | None = None
    memory: str = "3g"
    since: Path | Remote | None = None
    limits: dict = field(default_factory=dict)
    alert: str | None = None


def run(folder, out, wish, every_s=None):
    """Audit `folder` into `out` and show what was found -> exit code.

    With `every_s`, again whenever its files have changed, until interrupted.
    """
    with alone(out):
        if every_s is None:
            return _once(folder, out, wish, {})
        return _follow(folder, out, wish, every_s)


def _once(folder, out, wish, told):
    # `told`: {finding: how many the command of --alert was told of}; this updates it.
    result = audit(folder, out, wish)
    console = Console(stderr=True, highlight=False)
    _show(console, result, wish.limits)
    show_rest(console, result.folder)
    rest = ""
    if result.folder != out:
        # The tables of the last audit stay, as there is nothing to replace them.
        tables.discard(out)
        rest = "; %s is left as it was" % out
    else:
        console.print("report: %s" % (out / "report.html"), soft_wrap=True)
    if not result.rows["packets"]:
        text = "no MQTT packet in %s: check --ports and the captures%s"
        print(text % (folder, rest), file=sys.stderr)
        return BAD_INPUT
    over = too_many(result.findings, wish.limits)
    if wish.alert:
        new = {name: number for name, number in over.items() if number > told.get(name, 0)}
        told.update(tell(wish.alert, new, wish.limits, out))
    return FINDINGS if over else CLEAN


def _follow(folder, out, wish, every_s):
    # Judging only new packets cost twice as much as judging all: a late answer changes an old
    # verdict, so nearly all had to be judged again.
    ending, before, told, code = threading.Event(), None, {}, BAD_INPUT
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    while not ending.is_set():
        now = None
        try:
            now = [(one.capture, one.size_bytes) for one in files.listed(folder)]
            if now != before:
                code = _once(folder, out, wish, told)
        except Exception as error:  # the store may answer again, or the next file may be good
            print("nothing was judged: %s" % reason(error), file=sys.stderr)
            code = BAD_INPUT
        before = now
        ending.wait(every_s)
    return code


def audit(folder, out, wish=Wish()):
    """Audit `folder` into `out`, report included -> `outcome.Result`.

    Raises BadInput.
    """
    from .spark import engine, job

    _check(folder, out)
    try:
        before = collect.earlier(wish.since) if wish.since else None
    except collect.NoAudit as error:
        raise BadInput("--since: %s" % error)

    def report(result, folder):
        data = collect.collect(folder, result, before, wish.limits)
        texts = {"report.html": page.page(data), outcome.METRICS: outcome.metrics(result)}
        for name, text in texts.items():
            with (folder / name).open("wb") as stream:
                stream.write(text.encode())
        return texts

    _look_at_ports(folder, job.Options(**wish.options).ports)
    with _progress() as step:
        try:
            spark = engine.start(wish.master, wish.memory)
        except engine.NotStarted as error:
            raise BadInput(str(error)) from None
        out.mkdir(parents=True, exist_ok=True)
        return job.run(spark, folder, out, job.Options(**wish.options), step, report)


@contextlib.contextmanager
def alone(out):
    """The folder `out`, for one audit at a time, where the system can do it.  Raises BadInput."""
    if isinstance(out, Remote) or fcntl is None:
        yield
        return
    out.mkdir(parents=True, exist_ok=True)
    with open(out / _LOCK, "wb") as file:  # the lock ends with the process
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput("another audit writes to %s: wait for it" % out) from None
        except OSError:  # a network file system without locks
            pass
        yield


def reason(error):
    """The line of an error's text that says what went wrong: Spark puts plans behind it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if _NAMED.match(line)]
    return (named or lines or [repr(error)])[-1].removeprefix("Caused by: ")


def read_limits(texts):
    """{finding: how many are allowed} of texts such as "lost messages=3"."""
    known = outcome.findings({})
    limits = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        wanted = name.strip().lower()
        found = [one for one in known if one.lower().startswith(wanted)] if wanted else []
        if len(found) != 1 or not re.fullmatch("[0-9]{1,15}", number.strip()):
            what = "--allow %s: write NAME=NUMBER, NAME one of: %s"
            raise BadInput(what % (text, ", ".join(known)))
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
    if isinstance(folder, Path) and not folder.exists():
        raise BadInput("%s does not exist: name a folder with captures" % folder)
    if places.is_within(out, folder):
        raise BadInput("%s is in the folder with the captures: name another one for OUT" % out)
    for table in schemas.TABLES:
        for path, name, *_ in places.files(out / table):
            if not name.endswith(_REPLACED):
                raise BadInput("the audit would delete %s: name another folder for OUT" % path)
    problems = []
    for source in map(files.checked, files.listed(folder)):
        if source.problem is None:
            return
        problems.append("\n%s: %s" % (source.capture, source.problem))
    text = "no capture (.pcap, .pcapng, .jsonl, also compressed) under %s: name their folder%s"
    raise BadInput(text % (folder, "".join(problems[:_MOST_LINES])))


def _look_at_ports(folder, ports):
    # Told before Spark starts: nothing at the beginning of the first captures is on these ports.
    tally, numbers = Tally(), {int(port) for port in ports.split(",")}
    found = [one for one in files.listed(folder) if not files.is_json(files.checked(one))]
    for source in found[:_LOOKED_AT]:
        frames = next(files.read_frames(source.path, tally, chunk_bytes=1 << 20), None)
        if frames is not None and len(link.segments(frames, numbers, tally).ts):
            return
    others = [name.removeprefix(_OTHER) for name in tally.counts if name.startswith(_OTHER)]
    if others:
        text = "nothing on port %s in the first captures, but MQTT on port %s: --ports %s?"
        print(text % (ports, ", ".join(others), ",".join(others)), file=sys.stderr, flush=True)


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
    over = too_many(result.findings, limits)
    for title, head, rows in (
        ("tables", ("table", "rows"), result.rows),
        ("findings", ("what", "number", "allowed"), result.findings),
    ):
        table = Table(title=title, title_justify="left")
        for column in head:
            table.add_column(column, justify="left" if column == head[0] else "right")
        for name, number in rows.items():
            allowed = [f"{limits[name]:,}" if name in limits else ""] * (len(head) - 2)
            style = "bold red" if rows is result.findings and name in over else None
            table.add_row(name, f"{number:,}", *allowed, style=style)
        console.print(table)


def show_rest(console, out):
    """Print what is in the folder and in no table, and what is damaged, with its reason."""
    texts = {"not_read": "{capture} was not read: {detail}"}
    texts["error"] = "{capture}: byte {offset}: {detail}"
    captures = tables.read(out, "captures").to_pylist()
    lines = [texts[row["counter"]].format_map(row) for row in captures if row["counter"] in texts]
    lines.sort()
    for text in collect.notes(out) + lines[:_MOST_LINES]:
        console.print(text, style="yellow", soft_wrap=True, markup=False)
    if len(lines) > _MOST_LINES:
        more = len(lines) - _MOST_LINES
        console.print("and %d lines more, in the table captures" % more, style="yellow")
