"""The protocol level of connections whose CONNECT was not captured, from their packets.

At level 5 a PUBLISH has properties before its payload, if only a length of 0.  One payload
that cannot stand behind properties, or an answer without room for reason codes, is of a
level below; reason codes are of level 5; and when all of a few PUBLISHes can be level 5,
they are.  Levels 3 and 4 look the same: both are 4.  Where nothing tells, the level stays
unknown.
"""

import numpy as np

from .. import schemas
from .rows import TYPES

_ACKS = [TYPES[name] for name in ("PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "UNSUBACK")]
_FEW = 3  # fewer PUBLISHes may look like level 5 by chance


def infer(rows):
    """Set `level` in the `Rows` of such connections, with the payloads that follow from it."""
    is_packet = rows.is_packet & rows.is_captured
    open_rows = np.flatnonzero(is_packet & (rows.level < 0))
    if not len(open_rows):
        return
    column = rows.strings("at_5", open_rows)
    held = column.is_valid().to_numpy(zero_copy_only=False)
    at_5 = np.zeros(len(open_rows), schemas.AT_5)
    at_5["properties_bytes"] = -1  # -1: it cannot be level 5
    at_5[held] = np.frombuffer(b"".join(column.drop_null().to_pylist()), schemas.AT_5)
    properties, hash_at_5 = at_5["properties_bytes"].astype(np.int64), at_5["payload_hash"]
    kind, size = rows.kind[open_rows], rows.packet_bytes[open_rows]
    is_publish = kind == TYPES["PUBLISH"]
    may_be_5 = is_publish & (properties >= 0)
    # A reading told the decoder that it is level 5.
    is_known = may_be_5 & (hash_at_5 == rows.payload_hash[open_rows])
    is_ack, is_bye = np.isin(kind, _ACKS), kind == TYPES["DISCONNECT"]
    is_5 = is_known | (is_ack & (size > 4)) | (kind == TYPES["AUTH"])
    is_5 |= is_bye & ((size > 2) | (rows.direction[open_rows] == 1))
    is_4 = (is_publish & ~may_be_5) | ((kind == TYPES["UNSUBACK"]) & (size == 4))
    where, count = rows.connection[open_rows], len(rows.client_of)
    masks = is_5, is_4, may_be_5
    above, below, seeming = (np.bincount(where[one], minlength=count) for one in masks)
    is_5 = (below == 0) & ((above > 0) | (seeming >= _FEW))
    level = np.select([is_5, (below > 0) & (above == 0)], [5, 4], -1)[where]
    five = may_be_5 & (level == 5)
    moved = five & ~is_known
    rows.payload_hash[open_rows[five]] = hash_at_5[five]
    rows.payload_bytes[open_rows[moved]] -= properties[moved]
    # Properties were not read, so nothing is expected of a message that has some.
    told = ~five | (properties == 1)
    rows.level[open_rows[told]] = level[told]
