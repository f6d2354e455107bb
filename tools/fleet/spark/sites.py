"""What was judged of each site, so that a refresh judges only the sites with news.

Sites are address spaces of their own: no table's row depends on two of them.  Inside a
site everything may depend on everything, as a subscriber to `#` sees all topics, and how
long it was there says until when messages count as lost.
"""

import base64
import hashlib
import json
from collections import Counter
from pathlib import Path

import pyarrow as pa

from .. import outcome, places, schemas
from ..audit.rows import dictionary
from ..report import facts
from . import pack


def split(table):
    """-> [(site, its rows)]"""
    codes, sites = dictionary(table["site"])
    if len(sites) == 1:
        return [(sites[0].as_py(), table)]
    return [(sites[code].as_py(), rows) for code, rows in pack.split(table, codes)]


class Judged:
    """What refreshes found, in one file for each site under `folder`.

    `rules` is what verdicts depend on beside the packets: a site that was judged by
    others is judged again.
    """

    def __init__(self, folder, rules):
        self._folder = folder
        self._rules = rules
        self._sites = {}
        if folder.is_dir():
            for path in folder.iterdir():
                if path.name.endswith(".json"):
                    one = json.loads(path.read_text())
                    self._sites[one["site"]] = one

    def behind(self, changed):
        """The sites that have to be judged; `changed` is {site: batch of the last news}."""
        return [site for site, batch in changed.items() if not self._is_judged(site, batch)]

    def _is_judged(self, site, batch):
        one = self._sites.get(site)
        return one is not None and one["rules"] == self._rules and one["batch"] >= batch

    def add(self, site, batch, rows, counts, told):
        """The tables of a site are written, with all up to `batch`."""
        packed = {
            name: base64.b64encode(pack.dump(table)).decode() for name, table in told.items()
        }
        one = {"site": site, "rules": self._rules, "batch": batch, "facts": packed}
        self._sites[site] = one | {"rows": rows, "counts": counts}
        self._folder.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256(site.encode()).hexdigest()[:32] + ".json"
        places.replace_text(self._folder / name, json.dumps(self._sites[site]))

    def result(self):
        """-> `outcome.Result` of all sites."""
        rows, counts = Counter(), Counter()
        told = {name: [] for name in facts.MERGED}
        for one in self._sites.values():
            rows.update(one["rows"])
            counts.update(one["counts"])
            for name, text in one["facts"].items():
                told[name].append(pack.load([base64.b64decode(text)]))
        found = outcome.Result({name: rows[name] for name in schemas.TABLES})
        found.findings = outcome.findings(counts)
        found.facts = {name: facts.MERGED[name](parts) for name, parts in told.items() if parts}
        return found


def rules(exempt):
    """What verdicts depend on beside the packets: this program, and the exempt filters."""
    mixed = hashlib.sha256(json.dumps(sorted(exempt)).encode())
    root = Path(__file__).resolve().parents[1]
    for path in sorted(root.rglob("*.py")):
        mixed.update(path.read_bytes())
    return mixed.hexdigest()


def by_site(batches):
    """Packed rows of one site each, those of several sites as several rows."""
    for batch in batches:
        found = []
        for row in batch.to_pylist():
            if row["kind"] == "decoder":
                found.append(row)
                continue
            some = split(pack.load([row["part"]]))
            for site, rows in some:
                part = row["part"] if len(some) == 1 else pack.dump(rows)
                found.append(row | {"site": site, "part": part})
        if found:
            yield pa.RecordBatch.from_pylist(found, batch.schema)
