"""The tables of the pipeline: names, types, units and meanings of their columns.

Every other module takes its columns from here; `docs/fleet-tables.md` is checked
against it.  Times are UTC with microseconds.
"""

import pyarrow as pa

TS = pa.timestamp("us", tz="UTC")

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
# What a capture shows beside packets; `events` holds both, `packets` only the above.
EVENT_TYPES = (
    "TCP_OPEN",
    "TCP_FIN",
    "TCP_RESET",
    "GAP",
    "MALFORMED",
    "NOT_MQTT",
    "INCOMPLETE",
)
DIRECTIONS = ("c2s", "s2c")


def _schema(columns):
    fields = []
    for name, kind, meaning in columns:
        fields.append(pa.field(name, kind, metadata={"comment": meaning}))
    return pa.schema(fields)


EVENTS = _schema(
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
        ("detail", pa.string(), "JSON: fields of CONNECT, CONNACK, SUBSCRIBE and their answers"),
        ("envelope", pa.binary(), "payload that is a reading (docs/readings.md)"),
        ("error", pa.string(), "what is wrong with the packet's bytes; null when nothing"),
    ]
)
