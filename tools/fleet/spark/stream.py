"""The streaming job: what arrives is decoded once, the tables follow at intervals.

Theory of operation.  A micro-batch takes packed segments and events, decodes them
together with what the batch before left open (`decoder` rows), and writes all it
found into a folder named by its number, over whatever an earlier try left there.
Only then `manifest.json` is replaced, which says which folders count; a batch that
stands in it already is passed over.  So a kill at any moment loses and repeats
nothing, and what the manifest counts is on the disk before it.  `refresh` runs the
audit of the batch job over all events so far of the sites with news, beside the batches
that go on; the tables are those a batch over the same input would give.
"""

import json
import threading

from pyspark.sql import functions as F

from .. import parquet, places, schemas
from ..places import place
from ..report import facts
from . import job, pack, sites, tables, transforms
from .growing import MqttGrowingSource
from .live import TROUBLE, MqttSource

_FEW_PARTS = 32  # more folders than that are put together
# Events that only hold if nothing more comes, as a part of the table `packets`.
_OPEN = "open"


class Stream:
    """State and tables of one stream in the folder `out`.

    `buckets` must stay what it was at the first start; `exempt` as for the audit.
    """

    def __init__(self, session, out, buckets, exempt=()):
        self._session = session
        self._out = place(out)
        self._buckets = buckets
        self._exempt = exempt
        self._parts = state_folder(out) / "parts"
        self._manifest = _Manifest(state_folder(out) / "manifest.json")
        self._judged = sites.Judged(state_folder(out) / "judged", sites.rules(exempt))
        self._refreshed = None

    @property
    def is_begun(self):
        """Has anything ever arrived?"""
        return bool(self._manifest.changed)

    @property
    def is_behind(self):
        """Has anything arrived since the last `refresh`?"""
        return self.is_begun and self._manifest.batch != self._refreshed

    def take(self, frame, number):
        """One micro-batch, for `foreachBatch`."""
        if number <= self._manifest.batch:
            return
        name = "b-%08d" % number
        frame = self._with_state(frame)
        decoded = transforms.decode(frame, self._buckets, goes_on=True)
        decoded = decoded.mapInArrow(sites.by_site, pack.PACKED)
        decoded.write.mode("overwrite").partitionBy("kind").parquet(places.uri(self._parts / name))
        self._write_packets(self._read([name], "events"), "%08d" % number)
        parquet.sync(self._parts / name)
        parquet.sync(self._packets("%08d" % number))
        self._manifest.add(number, name, self._sites_of(name))

    def _sites_of(self, name):
        rows = self._read([name], "events", "captures").select("site").distinct().collect()
        return sorted(row.site for row in rows)

    def _with_state(self, frame):
        if not self._manifest.state:
            return frame
        return frame.unionByName(self._read([self._manifest.state], "decoder"))

    def _read(self, names, *kinds, of=None):
        # What these folders hold of these kinds, of all sites or of some.
        found = self._session.createDataFrame([], pack.PACKED)
        for kind in kinds:
            folders = [self._parts / name / ("kind=" + kind) for name in names]
            paths = [places.uri(folder) for folder in folders if folder.is_dir()]
            if paths:  # the kind is in the folders' names only
                rows = self._session.read.schema(pack.PACKED).parquet(*paths)
                found = found.unionByName(rows.withColumn("kind", F.lit(kind)))
        return found if of is None else found.where(F.col("site").isin(list(of)))

    def _write_packets(self, events, part):
        cores = self._session.sparkContext.defaultParallelism
        aside = state_folder(self._out) / ("packets-" + part)
        sink = tables.Sink(str(aside), ("packets",))
        told = transforms.packets(events.coalesce(cores), sink).toArrow()
        tables.publish(sink, told, shows_empty=False)
        tables.replace(aside / "packets", self._packets(part))
        places.remove(aside)

    def _packets(self, part):
        return self._out / "packets" / ("part=" + part)

    def refresh(self):
        """Bring all tables up to date -> `outcome.Result`."""
        batch, parts, state, changed = self._manifest.snapshot()
        behind = self._judged.behind(changed)
        if behind:
            self._write_packets(self._tail(state), _OPEN)
            self._judge(behind, batch, parts, state)
        result = self._judged.result()
        result.rows["packets"] = job.load(self._session, self._out, "packets").count()
        self._refreshed = batch
        self._merge(parts)
        return result

    def _tail(self, state, of=None):
        return self._read([state], "tail", of=of).withColumn("kind", F.lit("events"))

    def _judge(self, behind, batch, parts, state):
        events = self._read(parts, "events", "captures", of=behind)
        events = events.unionByName(self._tail(state, behind))
        names = tuple(name for name in schemas.TABLES if name != "packets")
        sink = tables.Sink(str(self._out), names, tuple(behind))
        with job.shelf(self._session) as shelf:
            found = job.audit(events, self._buckets, self._exempt, sink, shelf)
        for site in behind:
            own = found.sites.get(site, {"rows": {}, "counts": {}})
            told = {name: facts.of_site(table, site) for name, table in found.facts.items()}
            told = {name: table.drop_columns(["site"]) for name, table in told.items()}
            self._judged.add(site, batch, own["rows"], own["counts"], told)

    def _merge(self, parts):
        # Few large folders are read faster than many small ones.
        small = [name for name in parts if name.startswith("b-")]
        if len(small) > _FEW_PARTS:
            name = "m-" + small[-1].removeprefix("b-")
            packed = self._read(small, "events", "captures")
            packed = packed.repartitionById(self._buckets, "bucket").mapInArrow(merge, pack.PACKED)
            packed.write.mode("overwrite").partitionBy("kind").parquet(
                places.uri(self._parts / name)
            )
            self._manifest.merge(small, name)
        for folder in self._parts.iterdir():
            if self._manifest.is_past(folder.name):
                places.remove(folder)


def merge(batches):
    """Packed rows of one site, kind and bucket put together, one bucket after the other."""
    found = {}
    for batch in batches:
        for row in batch.to_pylist():
            key = row["site"], row["kind"], row["bucket"]
            found.setdefault(key, []).append(row["part"])
    for (site, kind, bucket), parts in sorted(found.items()):
        yield pack.rows([(kind, bucket, pack.load(parts))], site=site)


def sources():
    """The streaming data sources, to be registered with a session."""
    return [MqttGrowingSource, MqttSource]


def state_folder(out):
    """Where a stream keeps its state; Spark passes over names with an underscore."""
    return place(out) / "_stream"


def spool_folder(out):
    """Where a broker's messages lie until they are read."""
    return state_folder(out) / "spool"


def trouble_file(out):
    """Where the subscriber says why nothing comes from the broker."""
    return spool_folder(out) / TROUBLE


class _Manifest:
    # `batch`: the last that counts; `parts`: folders with its and all earlier events;
    # `state`: the folder with what it left open; `changed`: {site: its last batch}.
    # Batches and `refresh` are two threads.
    def __init__(self, path):
        self._path = path
        self._lock = threading.Lock()
        self.batch, self.parts, self.state, self.changed = -1, [], None, {}
        if path.exists():
            saved = json.loads(path.read_text())
            self.batch, self.parts, self.state = saved["batch"], saved["parts"], saved["state"]
            self.changed = saved["changed"]

    def snapshot(self):
        with self._lock:
            return self.batch, list(self.parts), self.state, dict(self.changed)

    def add(self, batch, name, changed):
        with self._lock:
            self.batch, self.state = batch, name
            self.changed.update(dict.fromkeys(changed, batch))
            self.parts.append(name)
            self._save()

    def merge(self, names, into):
        with self._lock:
            self.parts = [into, *(name for name in self.parts if name not in names)]
            self._save()

    def is_past(self, name):
        # A folder from before the last batch that does not count any more.
        with self._lock:
            number = int(name[2:])
            return number < self.batch and name not in (*self.parts, self.state)

    def _save(self):
        saved = {"batch": self.batch, "parts": self.parts, "state": self.state}
        saved["changed"] = self.changed
        places.replace_text(self._path, json.dumps(saved))
