"""Wills that the broker may have published: for `routes` they look like messages.

One that was due and came to nobody who was there for it is told by `not_sent`.
"""

import numpy as np
import pyarrow as pa

from .. import schemas
from ..columns import over, table
from .findings import found
from .messages import GRACE_US
from .rows import TYPES, equal_ones, grouped
from .traffic import flags, numbers

_DISCONNECT = TYPES["DISCONNECT"]
_WITH_WILL = 4  # reason code of level 5
# A broker may notice the end of a connection so long before the capture shows it.
_BEFORE_US = 1_000_000


def wills(rows, sessions):
    """The `schemas.WILLS` table: of connections that did not end with DISCONNECT."""
    has_will = sessions.hello.column("will_hash", pa.int64()).is_valid()
    chosen = np.flatnonzero(flags(has_will) & ~sessions.is_refused)
    bye = (rows.kind == _DISCONNECT) & (rows.direction == 0) & (rows.reason_code != _WITH_WILL)
    chosen = chosen[~rows.connections_with(bye)[chosen]]
    hello = [sessions.hello[one] for one in chosen.tolist()]
    first = rows.first_of[chosen]
    # The end of the connection was captured, and its will had no delay.
    is_over = ~(sessions.ended("open") | sessions.ended("disconnect"))[chosen]
    columns = {
        **rows.columns(("site", "client_id", "connection"), first),
        "topic": [one["will_topic"] for one in hello],
        "qos": [one["will_qos"] for one in hello],
        "payload_hash": np.array([one["will_hash"] for one in hello], np.int64),
        "since": sessions.end[chosen] - _BEFORE_US,
        "server": sessions.servers_at(first),
        "is_due": is_over & np.array([not one.get("will_delay_s") for one in hello], bool),
    }
    return table(columns, schemas.WILLS)


def not_sent(names, facts, spans, wills):
    """`schemas.FINDINGS` of wills that were due and that no subscriber got, with the `Names`,
    `Facts` and `Spans` of `routes`."""
    at = np.flatnonzero(flags(wills["is_due"]))
    since, place = numbers(wills, "since")[at], names.place_of_will[at]
    entry, found_at = equal_ones(place, spans.place)
    own, when, will = spans.span[found_at], since[entry], at[entry]
    there = (spans.begin[own] < when) & (when < spans.end[own])
    there &= (spans.server[own] == names.server_of_will[will]) & ~spans.has_gaps[own]
    there &= (spans.client[own] != names.client_of_will[will]) & ~spans.is_implied[own]
    there &= ~spans.is_shared[own]
    there &= spans.attached_until(own, when) >= when + _BEFORE_US + GRACE_US
    payload = numbers(wills, "payload_hash")[at]
    same = grouped(np.append(place, names.place), np.append(payload, facts.payload_hash))
    heard = np.where(facts.is_published, -1, facts.first_sent)
    last = over(np.maximum, len(same), same[len(at) :], heard, -1)
    missing = (np.bincount(entry, there, len(at)) > 0) & (last[same[: len(at)]] < since)
    rows = wills.take(pa.array(at[missing]))
    columns = {name: rows[name] for name in ("site", "client_id", "connection", "topic")}
    times = dict.fromkeys(("first_seen", "last_seen"), rows["since"])
    told = {"rule": "will_not_sent", "detail": "a subscriber was there, and got no will"}
    return found([told | {"count": 1}] * len(rows), **columns, **times)
