"""The tables that one step hands to the next and nobody writes; see `schemas`."""

import pyarrow as pa

from .columns import TS, schema

# Every PUBLISH once, however often it was sent: what `flows`, `sequences`, `losses`
# and `readings` are made of.
MESSAGES = schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("client_id", pa.string(), "the client at the other end from the broker"),
        ("connection", pa.string(), "that it was first sent on"),
        ("server", pa.string(), "address of the broker there, without its port"),
        ("direction", pa.string(), "`c2s` published, `s2c` delivered"),
        ("topic", pa.string(), "of the PUBLISH"),
        ("qos", pa.int8(), "of the PUBLISH"),
        ("packet_id", pa.int32(), "null at QoS 0"),
        ("payload_bytes", pa.int64(), "of the PUBLISH"),
        ("packet_bytes", pa.int32(), "of the whole PUBLISH"),
        ("payload_hash", pa.int64(), "64-bit fingerprint"),
        ("retain", pa.bool_(), "of the first PUBLISH"),
        ("first_sent", TS, "first PUBLISH seen"),
        ("times_sent", pa.int32(), "PUBLISH packets of this message"),
        ("times_dup", pa.int32(), "of these, marked DUP"),
        ("connections", pa.int32(), "connections it was sent on"),
        ("puback", TS, "first seen"),
        ("pubrec", TS, "first seen"),
        ("pubrel", TS, "first seen"),
        ("pubcomp", TS, "first seen"),
        ("answer_ms", pa.float64(), "first PUBLISH to PUBACK or PUBREC"),
        ("complete_ms", pa.float64(), "first PUBLISH to PUBACK or PUBCOMP"),
        ("is_complete", pa.bool_(), "was the last acknowledgement seen"),
        (
            "state",
            pa.string(),
            "`complete`, `open` (at the end, or sent again later), `abandoned`, `unknown` "
            "(bytes missing)",
        ),
        ("level", pa.int8(), "protocol level, null when not captured"),
        ("session", pa.int32(), "number of the client's session"),
        ("position", pa.int64(), "order of the client's packets"),
        ("capture", pa.string(), "file of the first PUBLISH"),
        ("offset", pa.int64(), "its byte in that file"),
        ("number", pa.int64(), "its place in the connection"),
        ("gaps", pa.int64(), "places where bytes of the client are missing, up to this message"),
        ("is_refused", pa.bool_(), "the other side's answer says that it did not take it"),
        ("is_early", pa.bool_(), "may have been sent before the capture began"),
        ("is_known", pa.bool_(), "was the beginning of its session captured"),
        (
            "is_sent_before",
            pa.bool_(),
            "marked DUP from the first PUBLISH seen on, and another one may have come where "
            "nothing was captured",
        ),
        ("accepted", TS, "when the broker took it on; null when it did not, or sent it"),
        ("expiry_s", pa.int64(), "message expiry of level 5; null without"),
        ("envelope", pa.binary(), "as in `packets`"),
        ("device", pa.string(), "client id in the envelope; null without one"),
        ("boot", pa.int64(), "boot counter in the envelope"),
        ("stream", pa.int16(), "stream in the envelope"),
        ("sequence", pa.int64(), "sequence number in the envelope"),
    ]
)

# What a client had subscribed to, and when.
SUBSCRIPTIONS = schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("client_id", pa.string(), "as in `packets`"),
        ("connection", pa.string(), "of the SUBACK; who it was, where the id does not tell"),
        ("server", pa.string(), "address of the broker there, without its port"),
        ("filter", pa.string(), "of the SUBSCRIBE"),
        ("prefix", pa.string(), "of the filter, before its first wildcard; null without one"),
        ("qos", pa.int8(), "granted"),
        ("session", pa.int32(), "number of the client's session"),
        ("begin", TS, "SUBACK"),
        ("end", TS, "UNSUBSCRIBE, end of the session, or last packet of the client"),
        ("last_seen", TS, "last packet of the client in the capture"),
        ("no_local", pa.bool_(), "not the client's own messages (also of bridges)"),
        ("as_published", pa.bool_(), "RETAIN stays as published (also of bridges)"),
        ("is_implied", pa.bool_(), "not captured: deliveries tell of it, `filter` is their topic"),
        ("packet_bytes_max", pa.int64(), "largest packet that the client takes; null: any"),
        ("online_begins", pa.list_(TS), "when the client was connected, in this session"),
        ("online_ends", pa.list_(TS), ""),
        ("asked", pa.list_(TS), "SUBSCRIBEs of the session, if it got anything with RETAIN"),
        ("busy_begins", pa.list_(TS), "when it always had a delivery to answer, five seconds on"),
        ("busy_ends", pa.list_(TS), ""),
        ("assumed_since", TS, "level 3: since when nobody says that the session goes on"),
        ("stuck_since", TS, "first delivery that the session never acknowledged"),
        ("full_since", TS, "since when these are as many as the client takes (level 5)"),
        ("gap_begins", pa.list_(TS), "when bytes of the client are missing"),
        ("gap_ends", pa.list_(TS), ""),
    ]
)

# Wills that the broker may have published.
WILLS = schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("client_id", pa.string(), "whose will it is"),
        ("connection", pa.string(), "as in `packets`"),
        ("topic", pa.string(), "of the will"),
        ("qos", pa.int8(), "of the will"),
        ("payload_hash", pa.int64(), "64-bit fingerprint"),
        ("since", TS, "end of the connection"),
    ]
)

# What `routes` finds for one subscriber, topic and QoS; joined into `sequences`.
ROUTES = schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("client_id", pa.string(), "the subscriber"),
        ("topic", pa.string(), "of the PUBLISH"),
        ("qos", pa.int8(), "as delivered"),
        ("lost", pa.int64(), "as in `sequences`"),
        ("duplicates", pa.int64(), "as in `sequences`"),
        ("repeated", pa.int64(), "as in `sequences`"),
        ("unmatched", pa.int64(), "as in `sequences`"),
        ("overtaking", pa.int64(), "as in `sequences`"),
    ]
)

# A row of Spark between two steps written in Python: a whole Arrow table as one value, as a
# row costs much and a large one little more (module `pack`).
FRAMES = schema(
    [
        ("kind", pa.string(), "what it holds: `segments`, `events`, …, or the name of a table"),
        ("bucket", pa.int32(), "the task of the next step that gets it"),
        ("site", pa.string(), "as in `packets`, where it is of one site"),
        ("capture", pa.string(), "as in `packets`, where it is of one file"),
        ("first_ts", TS, "of the file: when it begins"),
        ("begin", pa.int64(), "byte of the file where the part that was read begins"),
        ("part", pa.binary(), "the rows"),
    ]
)
# The same behind the step that judges: what was found is of no one file.
PARTS = pa.schema([FRAMES.field(name) for name in ("kind", "bucket", "part")])
