"""What an audit found, in numbers: counted by the tasks that make the tables, then added up.

No table is read again for it.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Kinds of `gaps` that were not read for a reason: they are told, and are no finding.
_PASSED_OVER = ("UNREAD", "ENCRYPTED")


@dataclass
class Result:
    """Rows of each table, what is a finding: {what: how many}, what the report's parts told, and
    the folder that the tables are in."""

    rows: dict
    findings: dict
    facts: dict = field(default_factory=dict)
    folder: Any = None


def count(name, table):
    """`Counter` of what the rows of the table `name` tell, to be added to others."""
    counters = _COUNTERS.get(name, {}) if table.num_rows else {}
    return Counter({what: counted(table) for what, counted in counters.items()})


def findings(counts):
    """{finding: how many} of the sum of all `count`s, in the order of importance."""
    return {what: counts.get(what, 0) for counters in _COUNTERS.values() for what in counters}


def _sum(column, *masks):
    for mask in masks:
        column = pc.if_else(mask, column, 0)
    return pc.sum(column).as_py() or 0


def is_known(table):
    """For each row: not what nobody can know, which is told in the tables and is no finding."""
    return pc.not_equal(table["sure"], "not_knowable")


def is_counted(losses):
    """For each row: known, and not at QoS 0, which allows it."""
    return pc.and_(is_known(losses), pc.greater(losses["qos"], 0))


def missing(gaps):
    """The rows of the table `gaps` that are findings."""
    return gaps.filter(pc.invert(pc.is_in(gaps["kind"].cast("string"), pa.array(_PASSED_OVER))))


# {table: {finding: how many}}, in the order of importance
_COUNTERS: dict[str, dict] = {
    "violations": {"violations": len},
    "losses": {"lost messages": lambda t: _sum(t["messages"], is_counted(t))},
    "sequences": {
        "duplicates at QoS 2": lambda t: _sum(t["duplicates"]),
        "overtaking messages": lambda t: _sum(t["overtaking"]),
        "incomplete messages": lambda t: _sum(t["incomplete"]),
    },
    # Where the publisher was captured, `sequences` knows what was delivered twice.
    "readings": {
        "duplicates at QoS 2": lambda t: _sum(
            *(1, pc.equal(t["qos"], 2), pc.is_null(t["published"])),
            pc.greater(t["times_delivered"], 1),
        )
    },
    # Rows about the capture accuse nobody.  They say why less was judged.
    "findings": {
        "clients and brokers in trouble": lambda t: _sum(
            *(1, pc.not_equal(t["about"], "capture"), is_known(t))
        )
    },
    "gaps": {"places where bytes are missing": lambda t: len(missing(t))},
    "captures": {
        "damaged places in files": lambda t: _sum(t["count"], pc.equal(t["counter"], "errors"))
    },
}
METRICS = "metrics.prom"


def metrics(result):
    """The text of `metrics.prom` for Prometheus' node exporter (its textfile collector)."""
    found = "# HELP mqtt_fleet_findings What the last audit found."
    lines = [found, "# TYPE mqtt_fleet_findings gauge"]
    lines += ['mqtt_fleet_findings{what="%s"} %d' % one for one in result.findings.items()]
    lines += ["# HELP mqtt_fleet_rows Rows of the tables.", "# TYPE mqtt_fleet_rows gauge"]
    lines += ['mqtt_fleet_rows{table="%s"} %d' % one for one in result.rows.items()]
    return "\n".join(lines) + "\n"
