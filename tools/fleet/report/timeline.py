"""What happened when: counts in steps of time that fit the span.

A task counts in steps that fit what it sees; steps of several tasks fit into each other.
Latencies are counted by size, as percentiles of parts cannot be added up.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..columns import table
from ..outcome import is_counted

# `at`: seconds since 1970; `bin`: of a latency, else 0.
_KINDS = {"step_s": pa.int64(), "at": pa.int64(), "what": pa.string(), "bin": pa.int16()}
SCHEMA = pa.schema(_KINDS | {"count": pa.int64()})
# Each divides the next, so counts of one step can be summed to a larger one.
_STEPS_S = (1, 10, 60, 600, 3600, 86_400)
_SHOWN_S = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400)
_MOST_STEPS = 500
_SHOWN_STEPS = 120
_PER_DOUBLING = 8  # bins: 9 percent from one to the next
_COUNTED = ("packets", "connections", "readings", "latency", "violations", "losses")


def partial(tables):
    """What these tables of one task tell -> rows of `SCHEMA`, or None."""
    found = [one for name in _COUNTED if name in tables for one in _counted(name, tables[name])]
    found = [_steps(*one) for one in found if len(one[0])]
    return merge(found) if found else None


def _counted(name, rows):
    time = "start" if name == "connections" else "ts"
    is_loss = name == "losses"
    if is_loss:
        rows = rows.filter(is_counted(rows))
    rows = rows.filter(pc.is_valid(rows[time]))
    seconds = rows[time].cast(pa.int64()).to_numpy() // 1_000_000
    none, once = np.zeros(len(rows), np.int64), np.ones(len(rows), np.int64)
    if name != "latency":
        yield seconds, name, none, rows["messages"].to_numpy() if is_loss else once
    if name in ("readings", "latency"):
        known = rows["latency_ms"].is_valid().to_numpy()
        ms = np.maximum(rows["latency_ms"].to_numpy()[known], 0)
        bins = np.floor(_PER_DOUBLING * np.log2(1 + ms)).astype(np.int64)
        yield seconds[known], "latency", bins, once[known]


def _steps(seconds, what, bins, counts):
    step = _fitting(_STEPS_S, int(np.ptp(seconds)), _MOST_STEPS)
    return _summed({"what": [what] * len(bins), "bin": bins, "count": counts}, seconds, step)


def _summed(columns, at, step):
    # Rows of `SCHEMA`, summed in steps of so many seconds.
    rows = pa.table({**columns, "at": at // step * step})
    found = rows.group_by(["at", "what", "bin"]).aggregate([("count", "sum")])
    found = found.rename_columns({"count_sum": "count"})
    return table({"step_s": np.full(len(found), step)}, SCHEMA, found)


def _fitting(steps, span_s, most):
    return next((step for step in steps if span_s // step < most), steps[-1])


def merge(tables):
    """Rows of several tasks, in the largest of their steps."""
    rows = pa.concat_tables(tables)
    at = rows["at"].to_numpy()
    # The whole time may need larger steps than its parts.
    step = max(int(rows["step_s"].to_numpy().max()), _fitting(_STEPS_S, int(np.ptp(at)), 2000))
    return _summed({name: rows[name] for name in ("what", "bin", "count")}, at, step)


def shown(rows):
    """Of what is merged, or None: (seconds of a step, [{"at": …, "packets": …, "p50": …}, …])."""
    if not rows:
        return 1, []
    at = rows["at"].to_numpy()
    least = int(rows["step_s"][0].as_py())
    steps = [step for step in _SHOWN_S if step % least == 0] or [least]
    step = _fitting(steps, int(np.ptp(at)), _SHOWN_STEPS)
    moments: dict[int, dict] = {}
    columns = (at // step * step, *(rows[name].to_pylist() for name in ("what", "bin", "count")))
    for moment, what, size, count in zip(*columns, strict=True):
        one = moments.setdefault(int(moment), {"at": int(moment)})
        if what == "latency":
            one.setdefault("bins", {})[size] = one.get("bins", {}).get(size, 0) + count
        else:
            one[what] = one.get(what, 0) + count
    for one in moments.values():
        if bins := one.pop("bins", None):
            parts = {"p50": 0.5, "p95": 0.95, "max": 1}
            one |= {name: _percentile(bins, part) for name, part in parts.items()}
    return step, [moments[moment] for moment in sorted(moments)]


def _percentile(bins, part):
    # The middle of the bin, in milliseconds.
    sizes = sorted(bins)
    reached = np.cumsum([bins[size] for size in sizes])
    size = sizes[np.searchsorted(reached, part * reached[-1])]
    return round(2 ** ((size + 0.5) / _PER_DOUBLING) - 1, 2)
