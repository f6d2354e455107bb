"""The streaming audit as a command: a folder that grows, or a live broker.

Checks what it is given, starts the query, refreshes the tables at intervals and at
the end, says what was found.  Like `batch`, but it does not end by itself.
"""

import hashlib
import json
import re
import signal
import threading
import time
import urllib.parse
from dataclasses import asdict, dataclass

from rich.console import Console

from . import batch, places
from .batch import CLEAN, FINDINGS, BadInput
from .places import java, place


@dataclass(frozen=True)
class Settings:
    """What a stream keeps from start to start; `buckets`: parts of the work.

    `state`: number of the form in which it is kept.
    """

    source: str
    ports: str = "1883"
    buckets: int = 16
    state: int = 3


@dataclass(frozen=True)
class Pace:
    """How often (in seconds): `trigger_s` batches, `refresh_s` tables; `settle_s` after
    the last change a file counts as complete that can only be read whole."""

    trigger_s: float = 5
    refresh_s: float = 60
    settle_s: float = 60


def run(
    settings, out, exempt=(), pace=Pace(), once=False, master=None, memory="3g", password=None
):
    """Follow `settings.source` into `out` until interrupted -> exit code.

    `once`: read what is there to its end, then stop.
    """
    from .report import collect, metrics, page
    from .spark import stream

    out = place(out)
    if places.is_remote(out) or is_folder(settings.source) and places.is_remote(settings.source):
        batch.start(master, memory)  # without Java nobody can look there
    source = source_options(settings.source, out, once, password)
    keep(settings, stream.state_folder(out))
    spark = batch.start(master, memory)
    for one in stream.sources():
        spark.dataSource.register(one)
    target = stream.Stream(spark, out, settings.buckets, exempt)
    reader = spark.readStream.format(source.pop("format"))
    options = {"ports": settings.ports, "buckets": settings.buckets, "hadoop": java.settings()}
    reader = reader.options(**options, **source)
    reader = reader.option("settle", 0 if once else pace.settle_s)
    writer = reader.load().writeStream.foreachBatch(target.take)
    writer = writer.option(
        "checkpointLocation", places.uri(stream.state_folder(out) / "checkpoint")
    )
    query = writer.trigger(processingTime="%g seconds" % (0 if once else pace.trigger_s)).start()
    console = Console(stderr=True, highlight=False)
    if once:
        query.processAllAvailable()
    else:
        _follow(query, target, console, pace.refresh_s)
    query.stop()
    result = _refresh(target, console)
    page.write(collect.collect(out, result), out / "report.html")
    metrics.write(result, out)
    console.print("report: %s" % (out / "report.html"), soft_wrap=True)
    return FINDINGS if any(result.findings.values()) else CLEAN


def _follow(query, target, console, refresh_s):
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    console.print("streaming; end it with Ctrl-C", soft_wrap=True)
    next_at = time.monotonic()
    while not ending.wait(0.5) and query.isActive:
        if time.monotonic() >= next_at and target.is_behind:
            _refresh(target, console)
            next_at = time.monotonic() + refresh_s
    if query.exception():
        text = str(query.exception()).strip().splitlines()
        raise BadInput("the stream ended, start it again: %s" % text[-1])


def _refresh(target, console):
    result = target.refresh()
    found = ["%s: %d" % item for item in result.findings.items() if item[1]]
    text = "%s  %d packets, %d readings; %s" % (
        time.strftime("%H:%M:%S"),
        result.rows["packets"],
        result.rows["readings"],
        ", ".join(found) or "nothing found",
    )
    console.print(text, style="red" if found else None, soft_wrap=True)
    return result


def is_folder(text):
    """Does the text name a folder, and no broker?"""
    return not re.match(r"(mqtts?|wss?|tcp|ssl|https?)://", text)


def source_options(text, out, once, password):
    """Options of the data source that `text` names, with its name as `format`."""
    if is_folder(text):
        folder = place(text)
        if not folder.is_dir():
            raise BadInput("%s is no folder: name one with captures" % folder)
        if places.is_within(out, folder):
            raise BadInput("--out must not be in the folder with the captures")
        return {"format": "mqtt_growing", "path": str(folder.resolve())}
    if once:
        raise BadInput("a broker never ends: leave out --once")
    if places.is_remote(out):
        raise BadInput("what a broker sends is kept under --out first: name a local folder")
    address, _, topics = text.removeprefix("mqtt://").partition("/")
    url = urllib.parse.urlsplit("mqtt://" + address)
    if not text.startswith("mqtt://") or not url.hostname:
        raise BadInput("%s: a broker is named as mqtt://host:port/filter" % text)
    if url.password:
        raise BadInput("give the password in the variable FLEET_PASSWORD, not in the address")
    options = {
        "format": "mqtt",
        "path": str((out / "_stream" / "spool").resolve()),
        "server": url.hostname,
        "port": str(url.port or 1883),
        "filter": urllib.parse.unquote(topics) or "#",
        # The same name at every start, another one for every stream.
        "clientid": "fleet-" + hashlib.sha256(str(out.resolve()).encode()).hexdigest()[:16],
    }
    if url.username:
        options["user"] = urllib.parse.unquote(url.username)
        options["password"] = password or ""
    return options


def keep(settings, folder):
    """Write the settings into `folder`; BadInput when a stream with others began there."""
    path = folder / "settings.json"
    if path.exists():
        saved = json.loads(path.read_text())
        for name, value in asdict(settings).items():
            if saved.get(name, 1) != value:
                text = "this folder belongs to a stream with %s %s: take another --out"
                raise BadInput(text % (name, saved.get(name, 1)))
        return
    folder.mkdir(parents=True, exist_ok=True)
    places.replace_text(path, json.dumps(asdict(settings)))
