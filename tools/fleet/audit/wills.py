"""Wills that the broker may have published: for `routes` they look like messages.

One that was due and came to nobody who was there for it is told by `not_sent`.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..columns import table
from ..mqtt import matches
from .findings import found
from .messages import GRACE_US
from .rows import TYPES
from .spans import SHARED
from .traffic import flags, is_published, microseconds

_DISCONNECT = TYPES["DISCONNECT"]
_WITH_WILL = 4  # reason code of level 5
# A broker may notice the end of a connection before the capture shows it.
_BEFORE_US = 1_000_000


def wills(rows, sessions):
    """The `schemas.WILLS` table: of connections that did not end with DISCONNECT."""
    has_will = sessions.hello.column("will_hash", pa.int64()).is_valid()
    chosen = np.flatnonzero(flags(has_will) & ~sessions.is_refused)
    bye = (rows.kind == _DISCONNECT) & (rows.direction == 0) & (rows.reason_code != _WITH_WILL)
    chosen = chosen[~rows.connections_with(bye)[chosen]]
    hello = [sessions.hello[one] for one in chosen.tolist()]
    first = rows.first_of[chosen]
    # The end of the connection was seen, and its will had not to wait.
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


def not_sent(wills, subscriptions, messages):
    """`schemas.FINDINGS` of wills that were due and that no subscriber got.

    `messages` are those of the wills' topics, None where there are none.
    """
    entries = []
    for will in wills.filter(wills["is_due"]).to_pylist():
        since = microseconds(will["since"])
        there = [one for one in subscriptions.to_pylist() if _had_to_get(one, will, since)]
        if there and not _is_got(messages, will, since):
            names = ("site", "client_id", "connection", "topic")
            seen = {"first_seen": since, "last_seen": since, "count": 1}
            seen["detail"] = "a subscriber was there, and got no will"
            entries.append({"rule": "will_not_sent", **{one: will[one] for one in names}, **seen})
    return found(entries)


def _had_to_get(one, will, since):
    if one["is_implied"] or one["filter"].startswith(SHARED) or one["gap_begins"]:
        return False
    if any(one[name] != will[name] for name in ("site", "server")):
        return False
    if one["client_id"] == will["client_id"] or not matches(one["filter"], will["topic"]):
        return False
    if not microseconds(one["begin"]) < since < microseconds(one["end"]):
        return False
    times = zip(one["online_begins"] or (), one["online_ends"] or (), strict=True)
    until = since + _BEFORE_US + GRACE_US
    return any(microseconds(a) <= since and microseconds(b) >= until for a, b in times)


def _is_got(messages, will, since):
    if messages is None:
        return False
    some = pc.equal(messages["topic"].cast(pa.string()), will["topic"])
    some = pc.and_(some, pc.equal(messages["site"].cast(pa.string()), will["site"]))
    some = pc.and_(some, pc.equal(messages["payload_hash"], will["payload_hash"]))
    rows = messages.filter(pc.fill_null(some, False))
    is_late = rows["first_sent"].cast(pa.int64()).to_numpy() >= since
    return bool((~is_published(rows) & is_late).any())
