"""Wills that the broker may have published, for `routes`: they look like messages."""

import numpy as np
import pyarrow as pa

from .. import schemas
from .rows import TYPES
from .sessions import table
from .traffic import flags

_DISCONNECT = TYPES["DISCONNECT"]
_WITH_WILL = 4  # reason code of level 5
# A broker may notice the end of a connection before the capture shows it.
_BEFORE_US = 1_000_000


def wills(rows, sessions):
    """The `schemas.WILLS` table: of connections that did not end with DISCONNECT."""
    has_will = sessions.hello.column("will_hash", pa.int64()).is_valid()
    chosen = np.flatnonzero(flags(has_will) & ~sessions.is_refused)
    is_said = np.zeros(len(rows.client_of), bool)
    bye = (rows.kind == _DISCONNECT) & (rows.direction == 0) & (rows.reason_code != _WITH_WILL)
    is_said[rows.connection[bye]] = True
    chosen = chosen[~is_said[chosen]]
    hello = [sessions.hello[one] for one in chosen.tolist()]
    first = rows.first_of[chosen]
    columns = {
        **rows.columns(("site", "client_id", "connection"), first),
        "topic": [one["will_topic"] for one in hello],
        "qos": [one["will_qos"] for one in hello],
        "payload_hash": np.array([one["will_hash"] for one in hello], np.int64),
        "since": sessions.end[chosen] - _BEFORE_US,
    }
    return table(columns, schemas.WILLS)
