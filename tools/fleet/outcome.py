"""What an audit found, in numbers: counted by the tasks that make the tables, then added up.

No table is read again for it.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Of `gaps`: what was not read for a reason is said, and is no finding.
_PASSED_OVER = ("UNREAD", "ENCRYPTED")


@dataclass
class Result:
    """Rows of each table, what is a finding: {what: how many}, and what `report.facts` told.

    `sites`: {site: {"rows": …, "counts": …}}, where it was asked for.  `folder`: where the
    tables are.
    """

    rows: dict = field(default_factory=dict)
    findings: dict = field(default_factory=dict)
    facts: dict = field(default_factory=dict)
    sites: dict = field(default_factory=dict)
    folder: Any = None


def count(name, table):
    """`Counter` of what the rows of the table `name` tell, to be added to others."""
    counter = _COUNTERS.get(name)
    return Counter(counter(table) if counter and table.num_rows else {})


def findings(counts):
    """{finding: how many} of the sum of all `count`s, in the order of importance."""
    counts = Counter(counts)
    return {
        "violations": counts["violations"],
        "lost messages": counts["lost"],
        "duplicates at QoS 2": counts["duplicates"] + counts["readings delivered twice"],
        "overtaking messages": counts["overtaking"],
        "incomplete messages": counts["incomplete"],
        "clients and brokers in trouble": counts["troubles"],
        "places where bytes are missing": counts["missing"],
        "damaged places in files": counts["damaged"],
    }


def _sum(column):
    return pc.sum(column).as_py() or 0


def _violations(table):
    return {"violations": table.num_rows}


def _losses(table):
    is_lost = pc.and_(pc.greater(table["qos"], 0), _is_known(table))
    return {"lost": _sum(table.filter(is_lost)["messages"])}


def _findings(table):
    # Rows about the capture accuse nobody: they say why less could be judged.
    is_trouble = pc.and_(pc.not_equal(table["about"], "capture"), _is_known(table))
    return {"troubles": _sum(is_trouble)}


def _is_known(table):
    # What nobody can know is told in the tables and is no finding.
    return pc.not_equal(table["sure"], "not_knowable")


def _sequences(table):
    return {name: _sum(table[name]) for name in ("duplicates", "overtaking", "incomplete")}


def _readings(table):
    # Where the publisher was captured, `sequences` knows what was delivered twice.
    twice = pc.and_(pc.equal(table["qos"], 2), pc.greater(table["times_delivered"], 1))
    twice = pc.and_(twice, pc.is_null(table["published"]))
    return {"readings delivered twice": _sum(twice)}


def _captures(table):
    return {"damaged": _sum(table.filter(pc.equal(table["counter"], "errors"))["count"])}


def missing(gaps):
    """The rows of the table `gaps` that are findings."""
    return gaps.filter(pc.invert(pc.is_in(gaps["kind"].cast("string"), pa.array(_PASSED_OVER))))


def _gaps(table):
    return {"missing": missing(table).num_rows}


_COUNTERS = {
    "violations": _violations,
    "losses": _losses,
    "findings": _findings,
    "sequences": _sequences,
    "readings": _readings,
    "captures": _captures,
    "gaps": _gaps,
}
