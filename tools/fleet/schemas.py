"""The tables of the pipeline: names, types, units and meanings of their columns.

Every other module takes its columns from here; `docs/reference/fleet-tables.md` is checked
against it.  A line is a column: name, type, meaning.  Times are UTC with microseconds.
"""

import re

import numpy as np
import pyarrow as pa

VERSION = 2  # of the tables' form; grows when a column changes its name, type or meaning
TS = pa.timestamp("us", tz="UTC")
_TYPES = {
    **{name: getattr(pa, name)() for name in ("int8", "int16", "int32", "int64", "float64")},
    **{"text": pa.string(), "bool": pa.bool_(), "bytes": pa.binary()},
    **{"time": TS, "times": pa.list_(TS), "values": pa.map_(pa.int16(), pa.int64())},
}


def _schema(text):
    # Names with a comma between have the same meaning; a line that begins with a blank goes on.
    # All tables begin with `site`, which `packets` explains.
    text = text if "\nsite " in text else "site text as in `packets`" + text
    fields = []
    for line in re.sub(r"\n +", " ", text.strip()).splitlines():
        names, kind, *meaning = line.split(" ", 2)
        told = {"comment": "".join(meaning)}
        fields += [pa.field(name, _TYPES[kind], metadata=told) for name in names.split(",")]
    return pa.schema(fields)


PACKET_TYPES = (
    *("", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBSCRIBE"),
    *("SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH"),
)
# What a capture shows beside packets; events are both, `packets` only the above.
EVENT_TYPES = (
    *("TCP_OPEN", "TCP_FIN", "TCP_RESET", "GAP", "MALFORMED", "NOT_MQTT", "INCOMPLETE"),
    *("UNREAD", "ENCRYPTED", "CLOCK_SET"),
)
DIRECTIONS = ("c2s", "s2c")

PACKETS = _schema("""
site text sub-folder the capture lies in, `default` when none
capture text file name under the audited folder
offset int64 byte of the (unpacked) file where the packet begins
connection text client and server address, port, and time of its start
client_id text from CONNECT; null when that was not captured
direction text `c2s` client to server, `s2c` server to client
ts time time of the segment that brought the packet's last byte
packet_type text the specification's name, such as `PUBLISH`
level int8 protocol level 3, 4 or 5; null when not captured
flags int8 low four bits of the first byte
qos int8 of a PUBLISH, 0 for other packets
dup bool DUP of a PUBLISH, PUBREL, SUBSCRIBE or UNSUBSCRIBE
retain bool RETAIN of a PUBLISH
packet_id int32 null for packets that have none
topic text of a PUBLISH
payload_bytes int64 of a PUBLISH; missing bytes of a gap
packet_bytes int64 of the whole packet
payload_hash int64 64-bit fingerprint of a PUBLISH's payload
reason_code int16 return or reason code; null for packets without
number int64 order of the packets of one connection (grows, has gaps)
detail text JSON: fields of CONNECT, SUBSCRIBE, their answers, DISCONNECT, of PUBLISH at level 5
envelope bytes payload that is a reading (docs/reference/readings.md)
error text what is wrong with the packet's bytes; null when nothing
""")
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

# Every PUBLISH once, however often it was sent: what `flows`, `sequences`, `losses`
# and `readings` are made of.
MESSAGES = _schema("""
client_id text the client at the other end from the broker
connection text that it was first sent on
server text address and port of the broker there
direction text `c2s` published, `s2c` delivered
topic text of the PUBLISH
qos int8 of the PUBLISH
packet_id int32 null at QoS 0
payload_bytes int64 of the PUBLISH
packet_bytes int32 of the whole PUBLISH
payload_hash int64 64-bit fingerprint
retain bool of the first PUBLISH
first_sent time first PUBLISH seen
times_sent int32 PUBLISH packets of this message
times_dup int32 of these, marked DUP
connections int32 connections it was sent on
puback,pubrec,pubrel,pubcomp time first seen
answer_ms float64 first PUBLISH to PUBACK or PUBREC
complete_ms float64 first PUBLISH to PUBACK or PUBCOMP
is_complete bool was the last acknowledgement seen
state text `complete`, `open` (at the end, or sent again later), `abandoned`, `unknown` (bytes
    missing)
level int8 protocol level, null when not captured
session int32 number of the client's session
position int64 order of the client's packets
capture text file of the first PUBLISH
offset int64 its byte in that file
number int64 its place in the connection
gaps int64 places where bytes of the client are missing, up to this message
is_refused bool the other side's answer says that it did not take it
is_early bool may have been sent before the capture began
is_known bool was the beginning of its session captured
is_sent_before bool marked DUP from the first PUBLISH seen on, and another one may have come
    where nothing was captured; or its time is there twice
accepted time when the broker took it on; null when it did not, or sent it
expiry_s int64 message expiry of level 5; null without
envelope bytes as in `packets`
device text client id in the envelope; null without one
boot int64 boot counter in the envelope
stream int16 stream in the envelope
sequence int64 sequence number in the envelope
""")

# What a client had subscribed to, and when.
SUBSCRIPTIONS = _schema("""
client_id text as in `packets`
connection text of the SUBACK; who it was, where the id does not tell
server text address and port of the broker there
filter text of the SUBSCRIBE
qos int8 granted
session int32 number of the client's session
begin time SUBACK
end time UNSUBSCRIBE, end of the session, or last packet of the client
last_seen time last packet of the client in the capture
no_local bool not the client's own messages (also of bridges)
as_published bool RETAIN stays as published (also of bridges)
is_implied bool not captured: deliveries tell of it, `filter` is their topic
packet_bytes_max int64 largest packet that the client takes; null: any
online_begins,online_ends times when the client was connected, in this session
asked times SUBSCRIBEs of the session, if it got anything with RETAIN
busy_begins,busy_ends times when it always had a delivery to answer, five seconds on
assumed_since time level 3: since when nobody says that the session goes on
stuck_since time first delivery that the session never acknowledged
full_since time since when these are as many as the client takes (level 5)
gap_begins,gap_ends times when bytes of the client are missing
""")

# Wills that the broker may have published.
WILLS = _schema("""
client_id text whose will it is
connection text as in `packets`
topic text of the will
qos int8 of the will
payload_hash int64 64-bit fingerprint
since time end of the connection
server text address and port of the broker there
is_due bool had the broker to publish it then
""")

# What `routes` finds for one subscriber, topic and QoS; joined into `sequences`.
ROUTES = _schema("""
client_id text the subscriber
topic text of the PUBLISH
qos int8 as delivered
lost,duplicates,repeated,unmatched,overtaking int64 as in `sequences`
""")

# The messages that can be answered, and what became of them.
_FLOWS = """
site client_id connection direction topic qos packet_id payload_bytes first_sent times_sent
times_dup connections puback pubrec pubrel pubcomp answer_ms complete_ms is_complete state
"""
FLOWS = pa.schema([MESSAGES.field(name) for name in _FLOWS.split()])

CONNECTIONS = _schema("""
capture text file it begins in
connection text as in `packets`
client_id text null when CONNECT was not captured
level int8 protocol level 3, 4 or 5; without CONNECT as its packets tell
keep_alive_s int32 as asked for in CONNECT (level 5: as the server sets it)
clean_session bool clean session, at level 5 clean start
has_will bool was a will message given
will_topic text null without a will
will_qos int8 null without a will
has_user bool user name given (never stored)
session_present bool of CONNACK; false at level 3
return_code int16 of CONNACK; null when it was not captured
client_receive_max int32 level 5: unanswered messages that the client takes
server_receive_max int32 level 5: the same of the server, from CONNACK
session int32 number of the client's session; grows when one is discarded
start time first packet or TCP segment seen
end time last packet or TCP segment seen
end_reason text `disconnect`, `closed_by_client`, `closed_by_server`, `reset`, or `open`
is_start_seen bool was CONNECT captured
packets_c2s int64 MQTT packets of the client
packets_s2c int64 MQTT packets of the server
bytes_c2s,bytes_s2c int64 MQTT bytes
gaps int32 places where bytes are missing in the capture
missing_bytes int64 in these gaps
""")

KEEPALIVE = _schema("""
client_id,connection text as in `packets`
start time of the connection
keep_alive_s int32 0: none asked for
longest_silence_s float64 between two packets of the client
late int32 silences longer than keep alive and its tolerance
pings int32 PINGREQ packets
unanswered_pings int32 PINGREQ packets without a PINGRESP
ping_ms float64 median time from PINGREQ to PINGRESP
""")

VIOLATIONS = _schema("""
requirement text id of the statement broken (docs/requirements.tsv)
by text `client` or `broker`
client_id text of the connection it was seen on
connection text as in `packets`
ts time time of the packet
capture text file of the packet; null when made from several
offset int64 its byte in that file
number int64 its place in the connection
topic text of the PUBLISH
packet_id int32 null where there is none
detail text what was seen
sure text `proved`, `likely` or `not_knowable` (fleet-verdicts.md)
why text in one sentence, why it is that sure
""")

FINDINGS = _schema("""
finding text its name (fleet-verdicts.md)
about text `client`, `broker` or `capture`: whom it concerns
client_id text null where it is not known
connection text the first one; null when it is about several clients
topic text null where there is none
first_seen time when it began
last_seen time when it was seen last
count int64 how often
sure text `proved`, `likely` or `not_knowable` (fleet-verdicts.md)
why text in one sentence, why it is that sure
detail text what was seen
""")

SEQUENCES = _schema("""
client_id,direction text as in `packets`
topic text of the PUBLISH
qos int8 of the PUBLISH
messages int64 different messages
packets int64 PUBLISH packets of QoS 0 to 2
redelivered int64 messages sent again, marked DUP (1,2,3,2,3,4)
unmarked int64 packets sent again without DUP
incomplete int64 messages given up without their last acknowledgement
lost int64 messages published while subscribed and never delivered here
duplicates int64 messages of QoS 2 delivered here again as new ones
repeated int64 others delivered again, which is allowed below QoS 2
unmatched int64 deliveries of which no PUBLISH was captured
overtaking int64 messages delivered after a later one of the same producer
in_flight_max int32 most messages unacknowledged at one time
latency_p50_ms float64 first PUBLISH to last acknowledgement, median
latency_p95_ms float64 95 % are not slower
latency_p99_ms float64 99 % are not slower
latency_max_ms float64 slowest
""")

LOSSES = _schema("""
kind text `never_seen`, `not_delivered` or `unexplained`
client_id text who did not get it; null for `never_seen`
published_by text the device of a reading, else the client; null: not known
topic text of the PUBLISH
qos int8 that could be expected
ts time published, or the next reading seen
device text of a reading, else null
boot int64 of a reading
stream int16 of a reading
first_sequence,last_sequence int64 of a reading
messages int64 lost ones in this row
connection text that it was first published on, or that the next reading was seen on
packet_id int32 of that PUBLISH; null at QoS 0
capture text file of that PUBLISH
offset int64 its byte in that file
sure text `proved`, `likely` or `not_knowable` (fleet-verdicts.md)
cause text what brought it about, a name of the table `causes`
why text the cause, in one sentence
evidence text in one sentence, why it is that sure
""")

CAUSES = _schema("""
cause text its name (fleet-verdicts.md)
why text what happened, in one sentence
advice text what to do
messages int64 lost by it, at QoS 1 and 2
at_qos_0 int64 lost by it at QoS 0, which allows it
not_knowable int64 messages of which nobody can know whether they are lost
clients int64 who did not get them, or did not send them
closed int64 connections that the broker ended with it; null for other causes
first_seen time the first lost message
last_seen time the last one
""")

READINGS = _schema("""
device text client id in the envelope
boot int64 boot counter
stream int16 series that `sequence` counts
sequence int64 1, 2, 3 … in each boot and stream
firmware text major.minor
uptime_s int64 since this boot
measured time by the device's clock; null when it did not know the time
ts time first seen, published or delivered
published time first PUBLISH of the device; null when not captured
delivered time first PUBLISH to a subscriber; null when none was captured
latency_ms float64 from published to delivered; null: not known
topic text of the PUBLISH
qos int8 as published, or as delivered when that was not captured
times_published int64 as different messages
times_delivered int64 as different messages, to the subscriber that got most
redelivered bool was one of its messages sent again
values values kind and value (docs/reference/readings.md)
""")

CAPTURES = _schema("""
capture text file name under the audited folder
counter text what was counted, or `error`
count int64 how many
offset int64 byte of the (unpacked) file, for errors
detail text the error
""")

_FOUND = """
kind text what was found instead of packets
bytes int64 missing, or not understood
"""
_WHERE = "site capture offset connection client_id direction ts".split()
GAPS = pa.schema([*map(PACKETS.field, _WHERE), *list(_schema(_FOUND))[1:]])

DEVICES = _schema("""
client_id text null: all whose CONNECT was not captured
state text `losing`, `faulty`, `unsteady` or `well`
why text what is wrong, in words; null when nothing is
firmware text newest, from its readings
lost int64 messages of it that were never seen
undelivered int64 messages of it that the broker did not pass on to all
missed int64 messages that it should have got and did not
duplicates,overtaking int64 as in `sequences`
incomplete int64 messages that it gave up
violations int64 statements that it broke, not the broker
troubles int64 findings about it (fleet-verdicts.md), how often in all
late int64 silences longer than keep alive and its tolerance
connects int64 connections
refused int64 of these, refused by the server
ended_disconnect int64 of these, ended by DISCONNECT
ended_closed_by_client int64 of these, closed without it
ended_closed_by_server int64 of these, closed by the server
ended_reset int64 of these, reset
ended_open int64 of these, not ended in the capture
first_seen time begin of its first connection
last_seen time its last packet or TCP segment
keep_alive_s int32 largest that it asked for
longest_silence_s float64 between two of its packets
ping_ms float64 from PINGREQ to PINGRESP: median, of the worst connection
sent int64 messages published
received int64 messages delivered to it
redelivered int64 messages sent again, marked DUP
readings int64 different readings of it
boots int64 different boot counters
latency_p50_ms float64 of its slowest topic, published to delivered
latency_p95_ms float64 95 % are not slower
""")

# The tables that an audit writes, by name.
_NAMES = """
packets devices connections flows sequences violations findings keepalive readings losses gaps
captures causes
"""
TABLES: dict[str, pa.Schema] = {name: globals()[name.upper()] for name in _NAMES.split()}
