"""What brought losses about: one cause for what has one, how much of it, and what to do.

Works on the tables that the tasks wrote, in the driver.  A cause is sought in the order of
`_CAUSES`; what no other explains, the broker lost.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..audit.rows import dictionary, grouped, servers
from ..audit.verdicts import BRIDGED, LOST

_TOGETHER_US, _PART, _LEAST = 3_000_000, 0.8, 3  # connections that a broker's end takes along
_BEFORE_US, _BEHIND_US = 30_000_000, 60_000_000  # around it: what it may have lost
_NEAR_US = 5_000_000  # around a finding
# Name: (what happened, what to do)
_CAUSES = {
    "broker_restarted": (
        "the broker at {server} ended all its connections at once: it restarted, or its host did",
        "look into its log; let it keep its messages on disk (mosquitto: persistence, "
        "autosave_interval)",
    ),
    "client_id_used_twice": (
        "two programs use the client id {client} and throw each other out",
        "give each its own client id",
    ),
    "link_lost": (
        "the link of {client} was gone: it fell silent, and the broker noticed by keep alive",
        "look at its Wi-Fi and power; a kept session loses nothing meanwhile",
    ),
    "queue_full": (
        "{client} was away, and the broker keeps only so many messages for it",
        "raise the broker's queue (mosquitto: max_queued_messages), or let the client come sooner",
    ),
    "not_acknowledged": (
        "{client} left messages unacknowledged: the broker sends no more to it",
        "look into that program: it hangs, or does not acknowledge what it handles",
    ),
    "not_allowed": (
        "nothing of this topic or client reaches {client}: a rule of the broker may forbid it",
        "compare the broker's rules with what {client} subscribes to",
    ),
    "bridge_left_out": (
        "the bridge {client} got it at one broker and did not publish it at the other",
        "look at the bridge's QoS and queue, and at what it does when its other side is gone",
    ),
    "never_sent": (
        "{device} counted them and did not send them, or nobody captured it",
        "look at its queue and at its resets: at QoS 0, or without a journal, they get lost there",
    ),
    "broker_lost_it": (
        "the broker took it on and did not pass it on to {client}",
        "look into the broker's log at that time; at QoS 0 it may do so",
    ),
}
NAMES = tuple(_CAUSES)
_BY_EVIDENCE = {
    "not_acknowledged": ("earlier messages unacknowledged", "are unacknowledged"),
    "not_allowed": ("it may not be allowed",),
}


def explained(losses, connections, findings):
    """-> (losses with `cause` and `why`, the table `causes`).

    The three are Arrow tables of `schemas`.
    """
    count = losses.num_rows
    cause = np.full(count, NAMES.index("broker_lost_it"))
    ts = losses["ts"].cast(pa.int64()).to_numpy()
    site, who, by = (losses[name].to_pylist() for name in ("site", "client_id", "published_by"))
    device = losses["device"].to_pylist()
    server = np.array(_servers(losses["connection"]), object)
    is_away = _away(losses, connections, ts)
    restarts = _restarts(connections)
    known = _findings(findings)
    evidence, kind = losses["evidence"].to_pylist(), losses["kind"].to_pylist()
    for at in range(count):
        near = known.get((site[at], who[at]), []) + known.get((site[at], by[at]), [])
        name = next((name for name, low, high in near if low <= ts[at] <= high), None)
        moments = restarts.get((site[at], server[at]), ())
        if kind[at] == "never_seen":
            name = name or "never_sent"
        elif any(one - _BEFORE_US <= ts[at] <= one + _BEHIND_US for one in moments):
            name = "broker_restarted"
        elif evidence[at] == LOST[BRIDGED][1]:
            name = "bridge_left_out"
        name = name or _told(evidence[at]) or ("queue_full" if is_away[at] else None)
        cause[at] = NAMES.index(name or "broker_lost_it")
    texts = [
        _text(NAMES[one], server=server[at], client=who[at], device=device[at] or by[at])
        for at, one in enumerate(cause.tolist())
    ]
    losses = _with(losses, "cause", [NAMES[one] for one in cause.tolist()])
    losses = _with(losses, "why", texts)
    return losses, _summed(losses, connections, restarts)


def _text(name, **words):
    shown = {key: "?" if value is None else str(value) for key, value in words.items()}
    return _CAUSES[name][0].format_map(shown)


def _with(table, name, values):
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), pa.array(values, pa.string()))


def _told(evidence):
    for name, texts in _BY_EVIDENCE.items():
        if any(text in evidence for text in texts):
            return name
    return None


def _servers(column):
    codes, names = servers(column.cast(pa.string()).fill_null(""))
    return names.take(pa.array(codes)).to_pylist()


def _restarts(connections):
    # {(site, server): [when]}: nearly all that were open end at once, and not by the clients.
    start, end = (connections[name].cast(pa.int64()).to_numpy() for name in ("start", "end"))
    by_server = pc.is_in(connections["end_reason"], pa.array(["closed_by_server", "reset"]))
    by_server = by_server.to_numpy(zero_copy_only=False)
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


def _away(losses, connections, ts):
    # Was the subscriber connected nowhere when each was published?
    result = np.zeros(losses.num_rows, bool)
    keys = list(zip(losses["site"].to_pylist(), losses["client_id"].to_pylist(), strict=True))
    wanted = {key for key in keys if key[1] is not None}
    times: dict[tuple, list] = {key: [] for key in wanted}
    names = pa.array([client for _, client in wanted], pa.string())
    some = connections.filter(pc.is_in(connections["client_id"], names))
    starts, ends = (some[name].cast(pa.int64()).to_pylist() for name in ("start", "end"))
    both = zip(some["site"].to_pylist(), some["client_id"].to_pylist(), strict=True)
    for key, begin, end in zip(both, starts, ends, strict=True):
        times.get(key, []).append((begin, end))
    for at, key in enumerate(keys):
        own = times.get(key, ())
        result[at] = bool(own) and not any(begin <= ts[at] <= end for begin, end in own)
    return result


def _findings(findings):
    # {(site, client): [(cause, from, until)]}
    names = {"client_id_conflict": "client_id_used_twice", "silent_for_good": "link_lost"}
    found: dict[tuple, list] = {}
    for row in findings.filter(pc.is_in(findings["finding"], pa.array(list(names)))).to_pylist():
        low, high = (int(row[one].timestamp() * 1e6) for one in ("first_seen", "last_seen"))
        entry = names[row["finding"]], low - _NEAR_US, high + _NEAR_US
        found.setdefault((row["site"], row["client_id"]), []).append(entry)
    return found


def _summed(losses, connections, restarts):
    # One row for each cause, sentence and site; of a broker's end also how many it closed.
    columns: dict = {name: [] for name in schemas.CAUSES.names}
    groups: dict[tuple, list] = {}
    for row in losses.to_pylist():
        groups.setdefault((row["site"], row["cause"], row["why"]), []).append(row)
    for (site, cause, why), rows in groups.items():
        known = [row for row in rows if row["sure"] != "not_knowable"]
        values = {
            "site": site,
            "cause": cause,
            "why": why,
            "advice": _advice(cause, rows[0]),
            "messages": sum(row["messages"] for row in known if row["qos"]),
            "at_qos_0": sum(row["messages"] for row in known if not row["qos"]),
            "not_knowable": sum(row["messages"] for row in rows if row not in known),
            "clients": len({row["client_id"] or row["published_by"] for row in rows}),
            "first_seen": min(row["ts"] for row in rows),
            "last_seen": max(row["ts"] for row in rows),
            "closed": None,
        }
        if cause == "broker_restarted":
            values["closed"] = _closed(connections, restarts, site, rows)
        for name, value in values.items():
            columns[name].append(value)
    arrays = [pa.array(columns[field.name], field.type) for field in schemas.CAUSES]
    return pa.table(arrays, schema=schemas.CAUSES)


def _advice(cause, row):
    return _CAUSES[cause][1].replace("{client}", str(row["client_id"]))


def _closed(connections, restarts, site, rows):
    # How many connections its broker ended at these moments.
    server = _servers(pa.array([rows[0]["connection"]]))[0]
    moments = restarts[site, server]
    ends = connections["end"].cast(pa.int64()).to_numpy()
    is_mine = np.array(_servers(connections["connection"]), object) == server
    is_mine &= pc.equal(connections["site"], site).to_numpy(zero_copy_only=False)
    near = [(ends >= one) & (ends <= one + _TOGETHER_US) for one in moments]
    return int((is_mine & np.logical_or.reduce(near)).sum())
