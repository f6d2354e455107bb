"""The tables of the pipeline: names, types, units and meanings of their columns.

Every other module takes its columns from here; `docs/reference/fleet-tables.md` is checked
against it.  Times are UTC with microseconds.
"""

import numpy as np
import pyarrow as pa

from . import between
from .columns import TS
from .columns import schema as _schema

PACKET_TYPES = (
    "",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
)
# What a capture shows beside packets; events are both, `packets` only the above.
EVENT_TYPES = (
    "TCP_OPEN",
    "TCP_FIN",
    "TCP_RESET",
    "GAP",
    "MALFORMED",
    "NOT_MQTT",
    "INCOMPLETE",
    "UNREAD",
    "ENCRYPTED",
)
DIRECTIONS = ("c2s", "s2c")


PACKETS = _schema(
    [
        ("site", pa.string(), "sub-folder the capture lies in, `default` when none"),
        ("capture", pa.string(), "file name under the audited folder"),
        ("offset", pa.int64(), "byte of the (unpacked) file where the packet begins"),
        ("connection", pa.string(), "client and server address, port, and time of its start"),
        ("client_id", pa.string(), "from CONNECT; null when that was not captured"),
        ("direction", pa.string(), "`c2s` client to server, `s2c` server to client"),
        ("ts", TS, "time of the segment that brought the packet's last byte"),
        ("packet_type", pa.string(), "the specification's name, such as `PUBLISH`"),
        ("level", pa.int8(), "protocol level 3, 4 or 5; null when not captured"),
        ("flags", pa.int8(), "low four bits of the first byte"),
        ("qos", pa.int8(), "of a PUBLISH, 0 for other packets"),
        ("dup", pa.bool_(), "DUP of a PUBLISH, PUBREL, SUBSCRIBE or UNSUBSCRIBE"),
        ("retain", pa.bool_(), "RETAIN of a PUBLISH"),
        ("packet_id", pa.int32(), "null for packets that have none"),
        ("topic", pa.string(), "of a PUBLISH"),
        ("payload_bytes", pa.int64(), "of a PUBLISH; missing bytes of a gap"),
        ("packet_bytes", pa.int64(), "of the whole packet"),
        ("payload_hash", pa.int64(), "64-bit fingerprint of a PUBLISH's payload"),
        ("reason_code", pa.int16(), "return or reason code; null for packets without"),
        ("number", pa.int64(), "order of the packets of one connection (grows, has gaps)"),
        (
            "detail",
            pa.string(),
            "JSON: fields of CONNECT, SUBSCRIBE, their answers, DISCONNECT, of PUBLISH at level 5",
        ),
        ("envelope", pa.binary(), "payload that is a reading (docs/reference/readings.md)"),
        ("error", pa.string(), "what is wrong with the packet's bytes; null when nothing"),
    ]
)
# What travels with packets to where they are judged: of a PUBLISH whose level was not
# captured, what it is if that is 5 (an `AT_5`); null where it cannot be.
EVENTS = pa.schema([*PACKETS, pa.field("at_5", pa.binary())])
AT_5 = np.dtype([("properties_bytes", "<i4"), ("payload_hash", "<i8")])

CODED = pa.dictionary(pa.int32(), pa.string())
_REPEATING = ("site", "capture", "connection", "client_id", "direction", "packet_type", "topic")
# The same with dictionaries for strings that repeat: how packets travel.
CODED_EVENTS = pa.schema(
    [field.with_type(CODED) if field.name in _REPEATING else field for field in EVENTS]
)

CODED_PACKETS = pa.schema([CODED_EVENTS.field(name) for name in PACKETS.names])

# What the steps hand to each other, and is not written.
MESSAGES, SUBSCRIPTIONS = between.MESSAGES, between.SUBSCRIPTIONS
WILLS, ROUTES = between.WILLS, between.ROUTES
# As rows of Spark, with all these and some tables as their payload.
FRAMES, PARTS = between.FRAMES, between.PARTS

_FLOW_COLUMNS = [
    "site",
    "client_id",
    "connection",
    "direction",
    "topic",
    "qos",
    "packet_id",
    "payload_bytes",
    "first_sent",
    "times_sent",
    "times_dup",
    "connections",
    "puback",
    "pubrec",
    "pubrel",
    "pubcomp",
    "answer_ms",
    "complete_ms",
    "is_complete",
    "state",
]
FLOWS = pa.schema([MESSAGES.field(name) for name in _FLOW_COLUMNS])

CONNECTIONS = _schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("capture", pa.string(), "file it begins in"),
        ("connection", pa.string(), "as in `packets`"),
        ("client_id", pa.string(), "null when CONNECT was not captured"),
        ("level", pa.int8(), "protocol level 3, 4 or 5; without CONNECT as its packets tell"),
        ("keep_alive_s", pa.int32(), "as asked for in CONNECT (level 5: as the server sets it)"),
        ("clean_session", pa.bool_(), "clean session, at level 5 clean start"),
        ("has_will", pa.bool_(), "was a will message given"),
        ("will_topic", pa.string(), "null without a will"),
        ("will_qos", pa.int8(), "null without a will"),
        ("has_user", pa.bool_(), "user name given (never stored)"),
        ("session_present", pa.bool_(), "of CONNACK; false at level 3"),
        ("return_code", pa.int16(), "of CONNACK; null when it was not captured"),
        ("client_receive_max", pa.int32(), "level 5: unanswered messages that the client takes"),
        ("server_receive_max", pa.int32(), "level 5: the same of the server, from CONNACK"),
        ("session", pa.int32(), "number of the client's session; grows when one is discarded"),
        ("start", TS, "first packet or TCP segment seen"),
        ("end", TS, "last packet or TCP segment seen"),
        (
            "end_reason",
            pa.string(),
            "`disconnect`, `closed_by_client`, `closed_by_server`, `reset`, or `open`",
        ),
        ("is_start_seen", pa.bool_(), "was CONNECT captured"),
        ("packets_c2s", pa.int64(), "MQTT packets of the client"),
        ("packets_s2c", pa.int64(), "MQTT packets of the server"),
        ("bytes_c2s", pa.int64(), "MQTT bytes"),
        ("bytes_s2c", pa.int64(), "MQTT bytes"),
        ("gaps", pa.int32(), "places where bytes are missing in the capture"),
        ("missing_bytes", pa.int64(), "in these gaps"),
    ]
)

KEEPALIVE = _schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("client_id", pa.string(), "as in `packets`"),
        ("connection", pa.string(), "as in `packets`"),
        ("start", TS, "of the connection"),
        ("keep_alive_s", pa.int32(), "0: none asked for"),
        ("longest_silence_s", pa.float64(), "between two packets of the client"),
        ("late", pa.int32(), "silences longer than keep alive and its tolerance"),
        ("pings", pa.int32(), "PINGREQ packets"),
        ("unanswered_pings", pa.int32(), "PINGREQ packets without a PINGRESP"),
        ("ping_ms", pa.float64(), "median time from PINGREQ to PINGRESP"),
    ]
)

_SURE = ("sure", pa.string(), "`proved`, `likely` or `not_knowable` (fleet-verdicts.md)")
_WHY = ("why", pa.string(), "in one sentence, why it is that sure")

VIOLATIONS = _schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("requirement", pa.string(), "id of the statement broken (docs/requirements.tsv)"),
        ("by", pa.string(), "`client` or `broker`"),
        ("client_id", pa.string(), "of the connection it was seen on"),
        ("connection", pa.string(), "as in `packets`"),
        ("ts", TS, "time of the packet"),
        ("capture", pa.string(), "file of the packet; null when made from several"),
        ("offset", pa.int64(), "its byte in that file"),
        ("number", pa.int64(), "its place in the connection"),
        ("topic", pa.string(), "of the PUBLISH"),
        ("packet_id", pa.int32(), "null where there is none"),
        ("detail", pa.string(), "what was seen"),
        _SURE,
        _WHY,
    ]
)

FINDINGS = _schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("finding", pa.string(), "its name (fleet-verdicts.md)"),
        ("about", pa.string(), "`client`, `broker` or `capture`: whom it concerns"),
        ("client_id", pa.string(), "null where it is not known"),
        ("connection", pa.string(), "the first one; null when it is about several clients"),
        ("topic", pa.string(), "null where there is none"),
        ("first_seen", TS, "when it began"),
        ("last_seen", TS, "when it was seen last"),
        ("count", pa.int64(), "how often"),
        _SURE,
        _WHY,
        ("detail", pa.string(), "what was seen"),
    ]
)

SEQUENCES = _schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("client_id", pa.string(), "as in `packets`"),
        ("direction", pa.string(), "as in `packets`"),
        ("topic", pa.string(), "of the PUBLISH"),
        ("qos", pa.int8(), "of the PUBLISH"),
        ("messages", pa.int64(), "different messages"),
        ("packets", pa.int64(), "PUBLISH packets of QoS 0 to 2"),
        ("redelivered", pa.int64(), "messages sent again, marked DUP (1,2,3,2,3,4)"),
        ("unmarked", pa.int64(), "packets sent again without DUP"),
        ("incomplete", pa.int64(), "messages given up without their last acknowledgement"),
        ("lost", pa.int64(), "messages published while subscribed and never delivered here"),
        ("duplicates", pa.int64(), "messages of QoS 2 delivered here again as new ones"),
        ("repeated", pa.int64(), "others delivered again, which is allowed below QoS 2"),
        ("unmatched", pa.int64(), "deliveries of which no PUBLISH was captured"),
        ("overtaking", pa.int64(), "messages delivered after a later one of the same producer"),
        ("in_flight_max", pa.int32(), "most messages unacknowledged at one time"),
        ("latency_p50_ms", pa.float64(), "first PUBLISH to last acknowledgement, median"),
        ("latency_p95_ms", pa.float64(), "95 % are not slower"),
        ("latency_p99_ms", pa.float64(), "99 % are not slower"),
        ("latency_max_ms", pa.float64(), "slowest"),
    ]
)

LOSSES = _schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("kind", pa.string(), "`never_seen`, `not_delivered` or `unexplained`"),
        ("client_id", pa.string(), "who did not get it; null for `never_seen`"),
        ("published_by", pa.string(), "the device of a reading, else the client; null: not known"),
        ("topic", pa.string(), "of the PUBLISH"),
        ("qos", pa.int8(), "that could be expected"),
        ("ts", TS, "published, or the next reading seen"),
        ("device", pa.string(), "of a reading, else null"),
        ("boot", pa.int64(), "of a reading"),
        ("stream", pa.int16(), "of a reading"),
        ("first_sequence", pa.int64(), "of a reading"),
        ("last_sequence", pa.int64(), "of a reading"),
        ("messages", pa.int64(), "lost ones in this row"),
        _SURE,
        _WHY,
    ]
)

READINGS = _schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("device", pa.string(), "client id in the envelope"),
        ("boot", pa.int64(), "boot counter"),
        ("stream", pa.int16(), "series that `sequence` counts"),
        ("sequence", pa.int64(), "1, 2, 3 … in each boot and stream"),
        ("firmware", pa.string(), "major.minor"),
        ("uptime_s", pa.int64(), "since this boot"),
        ("measured", TS, "by the device's clock; null when it did not know the time"),
        ("ts", TS, "first seen, published or delivered"),
        ("published", TS, "first PUBLISH of the device; null when not captured"),
        ("delivered", TS, "first PUBLISH to a subscriber; null when none was captured"),
        (
            "latency_ms",
            pa.float64(),
            "from published to delivered; null: not known",
        ),
        ("topic", pa.string(), "of the PUBLISH"),
        ("qos", pa.int8(), "as published, or as delivered when that was not captured"),
        ("times_published", pa.int64(), "as different messages"),
        ("times_delivered", pa.int64(), "as different messages, to the subscriber that got most"),
        ("redelivered", pa.bool_(), "was one of its messages sent again"),
        ("values", pa.map_(pa.int16(), pa.int64()), "kind and value (docs/reference/readings.md)"),
    ]
)

CAPTURES = _schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("capture", pa.string(), "file name under the audited folder"),
        ("counter", pa.string(), "what was counted, or `error`"),
        ("count", pa.int64(), "how many"),
        ("offset", pa.int64(), "byte of the (unpacked) file, for errors"),
        ("detail", pa.string(), "the error"),
    ]
)
GAPS = pa.schema(
    [
        EVENTS.field(name)
        for name in ("site", "capture", "offset", "connection", "client_id", "direction", "ts")
    ]
    + [
        pa.field("kind", pa.string(), metadata={"comment": "what was found instead of packets"}),
        pa.field("bytes", pa.int64(), metadata={"comment": "missing, or not understood"}),
    ]
)

DEVICES = _schema(
    [
        ("site", pa.string(), "as in `packets`"),
        ("client_id", pa.string(), "null: all whose CONNECT was not captured"),
        ("state", pa.string(), "`losing`, `faulty`, `unsteady` or `well`"),
        ("why", pa.string(), "what is wrong, in words; null when nothing is"),
        ("firmware", pa.string(), "newest, from its readings"),
        ("lost", pa.int64(), "messages of it that were never seen or did not arrive"),
        ("missed", pa.int64(), "messages that it should have got and did not"),
        ("duplicates", pa.int64(), "as in `sequences`"),
        ("overtaking", pa.int64(), "as in `sequences`"),
        ("incomplete", pa.int64(), "messages that it gave up"),
        ("violations", pa.int64(), "statements that it broke, not the broker"),
        ("troubles", pa.int64(), "findings about it (fleet-verdicts.md), how often in all"),
        ("late", pa.int64(), "silences longer than keep alive and its tolerance"),
        ("connects", pa.int64(), "connections"),
        ("refused", pa.int64(), "of these, refused by the server"),
        ("ended_disconnect", pa.int64(), "of these, ended by DISCONNECT"),
        ("ended_closed_by_client", pa.int64(), "of these, closed without it"),
        ("ended_closed_by_server", pa.int64(), "of these, closed by the server"),
        ("ended_reset", pa.int64(), "of these, reset"),
        ("ended_open", pa.int64(), "of these, not ended in the capture"),
        ("first_seen", TS, "begin of its first connection"),
        ("last_seen", TS, "its last packet or TCP segment"),
        ("keep_alive_s", pa.int32(), "largest that it asked for"),
        ("longest_silence_s", pa.float64(), "between two of its packets"),
        ("ping_ms", pa.float64(), "from PINGREQ to PINGRESP: median, of the worst connection"),
        ("sent", pa.int64(), "messages published"),
        ("received", pa.int64(), "messages delivered to it"),
        ("redelivered", pa.int64(), "messages sent again, marked DUP"),
        ("readings", pa.int64(), "different readings of it"),
        ("boots", pa.int64(), "different boot counters"),
        ("latency_p50_ms", pa.float64(), "of its readings, from published to delivered"),
        ("latency_p95_ms", pa.float64(), "95 % are not slower"),
    ]
)

# The tables that an audit writes, by name.
TABLES = {
    "packets": PACKETS,
    "devices": DEVICES,
    "connections": CONNECTIONS,
    "flows": FLOWS,
    "sequences": SEQUENCES,
    "violations": VIOLATIONS,
    "findings": FINDINGS,
    "keepalive": KEEPALIVE,
    "readings": READINGS,
    "losses": LOSSES,
    "gaps": GAPS,
    "captures": CAPTURES,
}
