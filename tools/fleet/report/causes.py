"""What brought losses about: one cause for what has one, how much of it, and what to do.

Works on the tables that the tasks wrote, in the driver.  The causes are those of
`audit.rules`; what no other explains, the broker lost.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..audit.rows import dictionary, grouped, servers
from ..audit.rules import CAUSES, LOSSES
from ..audit.traffic import flags, microseconds, numbers

_TOGETHER_US, _PART, _LEAST = 3_000_000, 0.8, 3  # connections that end with the broker
_BEFORE_US, _BEHIND_US = 30_000_000, 60_000_000  # when messages may be lost with it
_NEAR_US = 5_000_000  # around a finding
_WHO = ("client_id", "published_by")
_BY_FINDING = {"client_id_conflict": "client_id_used_twice", "silent_for_good": "link_lost"}
_BY_EVIDENCE = {rule.why: rule.about for rule in LOSSES.values() if rule.about in CAUSES}


def explained(losses, connections, findings):
    """-> the tables `losses`, with `cause` and `why`, and `causes`, by name.

    The three are Arrow tables of `schemas`.
    """
    server = _servers(losses["connection"])
    is_away = _away(losses, connections)
    restarts = _restarts(connections)
    known: dict[tuple, list] = {}  # {(site, client): [(cause, from, until)]}
    some = findings.filter(pc.is_in(findings["finding"], pa.array(list(_BY_FINDING))))
    for row in some.to_pylist():
        low, high = (microseconds(row[one]) for one in ("first_seen", "last_seen"))
        entry = _BY_FINDING[row["finding"]], low - _NEAR_US, high + _NEAR_US
        known.setdefault((row["site"], row["client_id"]), []).append(entry)
    rows = losses.to_pylist()
    for at, row in enumerate(rows):
        ts, site = microseconds(row["ts"]), row["site"]
        near = [one for who in _WHO for one in known.get((site, row[who]), ())]
        name = next((name for name, low, high in near if low <= ts <= high), None)
        told = _BY_EVIDENCE.get(row["evidence"])
        moments = restarts.get((site, server[at]), ())
        is_near = any(one - _BEFORE_US <= ts <= one + _BEHIND_US for one in moments)
        if told != "never_sent" and is_near:
            name = "broker_restarted"
        missed = ("queue_full" if row["qos"] else "not_kept") if is_away[at] else "broker_lost_it"
        name = name or told or missed
        device = row["device"] or row["published_by"]
        row["words"] = {"server": server[at], "client": row["client_id"], "device": device}
        row["cause"], row["why"] = name, _text(name, row["words"])
    for name in ("cause", "why"):
        at = losses.schema.get_field_index(name)
        values = pa.array([row[name] for row in rows], pa.string())
        losses = losses.set_column(at, losses.schema.field(at), values)
    return {"losses": losses, "causes": _summed(rows, connections, restarts)}


def _text(name, words, **more):
    shown = {key: "?" if value is None else str(value) for key, value in (words | more).items()}
    return CAUSES[name].why.format_map(shown)


def _servers(column):
    codes, names = servers(column.cast(pa.string()).fill_null(""))
    return names.take(pa.array(codes)).to_pylist()


def _restarts(connections):
    # -> {(site, server): [when]}: nearly all open connections end at once, not by the clients.
    start, end = (numbers(connections, name) for name in ("start", "end"))
    ends_so = pa.array(["closed_by_server", "reset"])
    by_server = flags(pc.is_in(connections["end_reason"], ends_so))
    server = pa.array(_servers(connections["connection"]), pa.string())
    site, sites = dictionary(connections["site"])
    code, names = dictionary(server)
    found: dict[tuple, list] = {}
    group = grouped(site, code)
    for one in np.unique(group).tolist():
        mine = np.flatnonzero(group == one)
        ends = np.sort(end[mine[by_server[mine]]])
        key = sites[int(site[mine[0]])].as_py(), names[int(code[mine[0]])].as_py()
        together = np.searchsorted(ends, ends + _TOGETHER_US, "right") - np.arange(len(ends))
        for at in np.flatnonzero(together >= _LEAST).tolist():
            moments = found.setdefault(key, [])
            if moments and ends[at] < moments[-1] + _TOGETHER_US:
                continue
            is_open = (start[mine] < ends[at]) & (end[mine] >= ends[at])
            if together[at] >= _PART * is_open.sum():
                moments.append(int(ends[at]))
    return found


def _away(losses, connections):
    # -> for each loss: was its subscriber connected nowhere when the message was published?
    ts, result = numbers(losses, "ts"), np.zeros(len(losses), bool)
    keys = list(zip(losses["site"].to_pylist(), losses["client_id"].to_pylist(), strict=True))
    times: dict[tuple, list] = {key: [] for key in keys if key[1] is not None}
    names = pa.array([client for _, client in times], pa.string())
    some = connections.filter(pc.is_in(connections["client_id"], names))
    starts, ends = (some[name].cast(pa.int64()).to_pylist() for name in ("start", "end"))
    both = zip(some["site"].to_pylist(), some["client_id"].to_pylist(), strict=True)
    for key, begin, end in zip(both, starts, ends, strict=True):
        times.get(key, []).append((begin, end))
    for at, key in enumerate(keys):
        own = times.get(key, ())
        result[at] = bool(own) and not any(begin <= ts[at] <= end for begin, end in own)
    return result


def _summed(losses, connections, restarts):
    # -> a row for each site, cause and client or broker; all that devices did not send is one.
    groups: dict[tuple, list] = {}
    for row in losses:
        key = row["site"], row["cause"], _text(row["cause"], row["words"], device="")
        groups.setdefault(key, []).append(row)
    found = []
    for (site, cause, _), rows in groups.items():
        devices = {row["words"]["device"] for row in rows}
        device = "%d devices" % len(devices) if len(devices) > 1 else devices.pop()
        words = rows[0]["words"]
        told = {"site": site, "cause": cause, "why": _text(cause, words, device=device)}
        told["advice"] = CAUSES[cause].advice.replace("{client}", str(words["client"]))
        told |= dict.fromkeys(("messages", "at_qos_0", "not_knowable"), 0)
        for row in rows:
            counted = "messages" if row["qos"] else "at_qos_0"
            counted = "not_knowable" if row["sure"] == "not_knowable" else counted
            told[counted] += row["messages"]
        told["clients"] = len({row["client_id"] or row["published_by"] for row in rows})
        told["first_seen"] = min(row["ts"] for row in rows)
        told["last_seen"] = max(row["ts"] for row in rows)
        if cause == "broker_restarted":
            told["closed"] = _closed(connections, restarts, site, rows)
        found.append(told)
    return pa.Table.from_pylist(found, schemas.CAUSES)


def _closed(connections, restarts, site, rows):
    # -> how many connections the broker ended at these moments.
    server = _servers(pa.array([rows[0]["connection"]]))[0]
    moments = restarts[site, server]
    ends = numbers(connections, "end")
    is_mine = np.array(_servers(connections["connection"]), object) == server
    is_mine &= flags(pc.equal(connections["site"], site))
    near = [(ends >= one) & (ends <= one + _TOGETHER_US) for one in moments]
    return int((is_mine & np.logical_or.reduce(near)).sum())
