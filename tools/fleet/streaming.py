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
from dataclasses import asdict, dataclass, field

from rich.console import Console

from . import batch, places
from .batch import CLEAN, FINDINGS, BadInput
from .mqtt import is_filter
from .places import java, place


@dataclass(frozen=True)
class Settings:
    """What a stream keeps from start to start; `buckets`: parts of the work.

    `state`: number of the form in which it is kept.
    """

    source: str
    ports: str = "1883"
    buckets: int = 16
    state: int = 4


@dataclass(frozen=True)
class Pace:
    """How often (in seconds): `trigger_s` batches, `refresh_s` tables; `settle_s` after
    the last change a file counts as complete that can only be read whole."""

    trigger_s: float = 5
    refresh_s: float = 60
    settle_s: float = 60


@dataclass(frozen=True)
class Alarm:
    """`limits` {finding: how many are allowed}; `command` of the shell, run where there are
    more of them than before."""

    limits: dict = field(default_factory=dict)
    command: str | None = None


def run(
    settings,
    out,
    exempt=(),
    pace=Pace(),
    once=False,
    master=None,
    memory="3g",
    password=None,
    alarm=Alarm(),
):
    """Follow `settings.source` into `out` until interrupted -> exit code.

    `once`: read what is there to its end, then stop.
    """
    out = place(out)
    if places.is_remote(out) or is_folder(settings.source) and places.is_remote(settings.source):
        batch.start(master, memory)  # without Java nobody can look there
    source = source_options(settings.source, out, once, password)
    with batch.alone(out):
        return _run(settings, source, out, exempt, pace, once, (master, memory), alarm)


def _run(settings, source, out, exempt, pace, once, spark_options, alarm):
    from .spark import stream

    check_out(out)
    keep(settings, stream.state_folder(out))
    spark = batch.start(*spark_options)
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

    trouble = Trouble(None if is_folder(settings.source) else stream.trouble_file(out), console)

    def refresh():
        return _refresh(target, out, console, alarm)

    if once:
        query.processAllAvailable()
    else:
        _follow(query, target, console, pace.refresh_s, refresh, trouble)
    query.stop()
    if not target.is_begun:
        what = "there is no capture in" if is_folder(settings.source) else "nothing came from"
        raise BadInput("nothing was read: %s %s yet" % (what, settings.source))
    result = refresh()
    batch.show_rest(console, out)
    console.print("report: %s" % (out / "report.html"), soft_wrap=True)
    if not result.rows["packets"]:
        raise BadInput("no MQTT packet so far: check --ports and the captures")
    return FINDINGS if batch.too_many(result.findings, alarm.limits) else CLEAN


class Trouble:
    """Says once why nothing comes from a broker, and when it is over.

    `path` is where the subscriber writes it, None where there is no broker.
    """

    def __init__(self, path, console):
        self._path, self._console, self._said = path, console, ""
        if path:
            path.unlink(missing_ok=True)

    def look(self):
        """Say what is new."""
        text = self._path.read_text() if self._path and self._path.exists() else ""
        if text != self._said:
            line = "nothing comes from the broker: %s" % text if text else "the broker is there"
            self._console.print(line, style="yellow", soft_wrap=True, markup=False)
        self._said = text


def _follow(query, target, console, refresh_s, refresh, trouble):
    ending = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.set())
    console.print("streaming; end it with Ctrl-C", soft_wrap=True)
    next_at = time.monotonic()
    while not ending.wait(0.5) and query.isActive:
        trouble.look()
        if time.monotonic() >= next_at and target.is_behind:
            refresh()
            next_at = time.monotonic() + refresh_s
    if query.exception():
        text = batch.reason(query.exception())
        raise BadInput("the stream ended, start it again: %s" % text)


def _refresh(target, out, console, alarm):
    from .report import collect, metrics, page
    from .spark import stream

    result = target.refresh()
    page.write(collect.collect(out, result, limits=alarm.limits), out / "report.html")
    metrics.write(result, out)
    if alarm.command:
        raise_alarm(alarm, result.findings, stream.state_folder(out) / "told.json", out)
    found = ["%s: %d" % item for item in result.findings.items() if item[1]]
    text = "%s  %d packets, %d readings; %s" % (
        time.strftime("%H:%M:%S"),
        result.rows["packets"],
        result.rows["readings"],
        ", ".join(found) or "nothing found",
    )
    console.print(text, style="red" if found else None, soft_wrap=True)
    return result


def raise_alarm(alarm, findings, path, out):
    """Tell the findings beyond their limits of which there are more than `path` says were told.

    A stream's findings are those of all its time, and each is worth one alarm; one that failed
    is raised again.
    """
    over = batch.too_many(findings, alarm.limits)
    before = json.loads(path.read_text()) if path.exists() else {}
    new = {name: number for name, number in over.items() if number > before.get(name, 0)}
    told = batch.tell(alarm.command, new, alarm.limits, out)
    known = {name: number for name, number in before.items() if name in over}
    now = known | {name: number for name, number in over.items() if name not in new} | told
    if now != before:
        places.replace_text(path, json.dumps(now))


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
            raise BadInput("%s is in the folder with the captures: name another --out" % out)
        return {"format": "mqtt_growing", "path": str(folder.resolve())}
    if once:
        raise BadInput("a broker never ends: leave out --once")
    if places.is_remote(out):
        raise BadInput("what a broker sends is kept under --out first: name a local folder")
    from .spark import stream

    address, _, topics = text.removeprefix("mqtt://").partition("/")
    try:
        url = urllib.parse.urlsplit("mqtt://" + address)
        is_named = text.startswith("mqtt://") and url.hostname and url.port != 0
    except ValueError:  # a port that is none, half of an IPv6 address
        is_named = False
    if not is_named:
        raise BadInput("%s: a broker is named as mqtt://host:port/filter" % text)
    if url.password:
        raise BadInput("give the password in the variable FLEET_PASSWORD, not in the address")
    options = {
        "format": "mqtt",
        "path": str(stream.spool_folder(out).resolve()),
        "server": url.hostname,
        "port": str(url.port or 1883),
        "filter": _filters(urllib.parse.unquote(topics) or "#"),
        # The same name at every start, another one for every stream.
        "clientid": "fleet-" + hashlib.sha256(str(out.resolve()).encode()).hexdigest()[:16],
    }
    if url.username:
        options["user"] = urllib.parse.unquote(url.username)
        options["password"] = password or ""
    return options


def _filters(text):
    for one in text.split():
        if not is_filter(one):
            raise BadInput("%s is no filter of MQTT: # is a whole level, the last" % one)
    return text


def check_out(out):
    """BadInput when an audit's tables are in `out`: those of a stream would lie beside them."""
    from .spark import stream

    if (out / "packets").is_dir() and not stream.state_folder(out).is_dir():
        raise BadInput("%s holds the tables of `fleet audit`: take another --out" % out)


def keep(settings, folder):
    """Write the settings into `folder`; BadInput when a stream with others began there."""
    path = folder / "settings.json"
    wanted = asdict(settings) | {"source": _whole(settings.source)}
    if path.exists():
        saved = json.loads(path.read_text())
        saved["source"] = _whole(saved["source"])
        for name, value in wanted.items():
            if saved.get(name, 1) != value:
                text = "this folder belongs to a stream with %s %s: take another --out"
                raise BadInput(text % (name, saved.get(name, 1)))
        return
    folder.mkdir(parents=True, exist_ok=True)
    places.replace_text(path, json.dumps(wanted))


def _whole(source):
    # The same folder by whatever name, and from whatever folder it is called.
    return str(place(source).resolve()) if is_folder(source) else source
