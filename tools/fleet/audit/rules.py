"""All rules of the audit as data: what each tells, how sure that is, why, and what to do.

Audit and report take their names and sentences from here; `docs/reference/fleet-verdicts.md` is
checked against it.  A line is a rule; one that begins with a blank goes on with the one before.
Behind a dot in a name: what makes the same finding surer.
"""

import re
from typing import NamedTuple


class Rule(NamedTuple):
    """`why` and `sure` as in the tables; `about`: whom a finding concerns, a loss's cause."""

    why: str
    sure: str
    about: str = ""


def _rules(text, columns):
    # Names, columns, sentence.  Names with a comma between have the same sentence.
    found = _lines(text, columns + 1)
    return {name: Rule(*rest[::-1]) for names, *rest in found for name in names.split(",")}


def _lines(text, cuts):
    lines = re.sub(r"\n +", " ", text.strip()).splitlines()
    return [line.split(" ", cuts) for line in lines]


FINDINGS = _rules(
    """
refused_connects client proved each CONNACK says so
silent_for_good client likely the broker ended the connection after that silence; last packets of
    the client that were not captured look the same
silent_for_good.told client proved the broker ended the connection after that silence
client_id_conflict client likely each new connection ends one that was alive; a client that opens
    a second one itself looks the same
client_id_conflict.told client proved the connections come from several addresses, or the broker
    says so
socket_left client not_knowable its CONNECT may have come after the end of the capture
socket_left.closed client proved it was opened, and closed without a packet
disconnected client proved DISCONNECT says so
client_complains broker proved DISCONNECT says so
refused_publish client proved the acknowledgement says so
refused_subscription client proved SUBACK says so
session_not_kept broker likely the broker says that it has no session; a limit of its own may have
    ended it
never_acknowledged broker proved the broker acknowledged later ones on this connection, which went
    on, and not this
will_not_sent broker likely its connection ended without DISCONNECT; a rule of the broker may
    forbid it
unexplained_copy broker not_knowable the same payload may have been published by a client, or at a
    time, that was not captured
not_subscribed broker not_knowable the client may have a subscription of which the capture shows
    no SUBSCRIBE
captured_twice capture proved every packet of another connection of this client is there a second
    time
one_direction capture proved packets that must be answered are there, and not one answer
began_before capture proved its CONNECT is not in the capture: client and session are not known
bytes_missing capture proved the TCP stream goes on behind bytes that are not in the capture
clock_set capture not_knowable nobody minded a silence far beyond keep alive: the clock was set
    forward, or the broker lets its clients be silent
clock_set.back capture proved their places in the file, or TCP, tell in which order packets came;
    their times go back
publisher_not_captured capture proved deliveries have payloads that nobody in the capture published
""",
    2,
)

# How a loss is known, and what that says of its cause.  The first ones are the device's own.
LOSSES = _rules(
    """
published never_sent proved the device published the readings around them and not these
moved never_sent likely the device published the readings around them, on two connections; in
    between it may have been connected elsewhere
received never_sent likely one subscriber got the readings around them on one connection
apart - not_knowable no subscriber was connected from the reading before to the one behind
between - proved messages of the same client before and behind it were delivered here
some - likely other messages of the same client on this topic were delivered here
assumed - likely level 3 does not say whether the broker had kept the session
stuck not_acknowledged not_knowable the subscriber had left earlier messages unacknowledged
full not_acknowledged not_knowable the broker has to wait: all that the subscriber takes are
    unacknowledged
others not_allowed not_knowable nothing of this client reached the subscriber here: it may not be
    allowed
none not_allowed not_knowable nothing of this topic reached the subscriber: it may not be allowed
elsewhere - not_knowable it was published through another address: that may be another broker
group - not_knowable nobody of this group got it; a member that was not captured may have
implied - likely its SUBSCRIBE came before the capture; the same client's messages around it came
waits - not_knowable what came around it had waited in the broker: it may wait still, or have
    expired there
blurred - not_knowable equal ones came at another QoS than expected: one at QoS 0, which may get
    lost, looks the same
away - likely messages around it were delivered; in between the subscriber was away, and may have
    been connected where nothing was captured
equal - proved messages of the same client before and behind it were delivered here; which of
    several equal ones is missing, this one or another, is not known
twice - likely an equal one came twice, as its publisher had sent it again; this one behind later
    ones looks the same
members - likely the members of this group got what came before and behind it, and nearly all else
bridged bridge_left_out likely a bridge passed on what was published before and behind it, and not
    this one
""",
    2,
)

# Why it is sure that a statement was broken, if one packet alone does not show it.
BREACHES = _rules(
    """
itself proved the packet shows it by itself
311-3.1.0-1,31-3.2-CONNACK proved the connection was captured from its first byte
311-3.1.0-2 proved no bytes are missing on the connection, so it is still the same one
311-3.14.4-2,MQTT-4.6.0-2,MQTT-4.6.0-3,MQTT-4.6.0-4 proved TCP shows the packets of each side in
    the order in which they were sent
31-2.1-DUP proved the same packet was there before, in the same session
31-2.2-KA proved two packets of the client, and none missing between them
files likely two packets of the client in two files, and none missing between them; a clock that
    was set from one file to the next looks the same
MQTT-3.3.4-7,MQTT-3.3.4-9 proved the receiver said how many it takes, and no bytes are missing on
    the connection
MQTT-4.3.2-1,MQTT-4.3.3-1 proved the message before it has no acknowledgement, and no bytes are
    missing
assumed likely level 3 does not say whether the broker had kept the session
last likely the other side was not seen to say anything behind it: an answer that was its last
    packet there, and was not captured, looks the same
MQTT-4.3.2-2,MQTT-4.3.3-2 likely all connections of this client until then had ended with
    DISCONNECT; one that broke before the capture, and took the first PUBLISH with it, looks the
    same
MQTT-4.3.2-4,MQTT-4.3.3-8 proved the session was captured from its beginning, and no bytes are
    missing
MQTT-4.3.3-4 proved it had read PUBREC, as it answered what came behind, and sent no PUBREL
unread likely five seconds and more behind PUBREC it sent something else; a program that reads
    slowly looks the same
MQTT-4.3.3-6 proved its PUBREL was there before, in the same session
moved,MQTT-4.4.0-1,MQTT-4.6.0-1 likely the session went over several connections: between them an
    answer, or one more of them, may have gone where nothing was captured
reading proved a reading says by itself which message it is
payload likely the messages are told apart by their payloads alone
""",
    1,
)


class Cause(NamedTuple):
    """What happened, and what to do."""

    why: str
    advice: str


# In the order of the search.  If no other cause explains a loss, the broker lost it.
CAUSES = {
    name: Cause(*both.split(" => "))
    for name, both in _lines(
        """
client_id_used_twice two programs use the client id {client} and throw each other out => give each
    its own client id
link_lost the link of {client} was gone: it fell silent, and the broker noticed by keep alive =>
    look at its Wi-Fi and power; a kept session loses nothing meanwhile
never_sent {device} counted them and did not send them, or nobody captured it => look at its queue
    and at its resets: at QoS 0, or without a journal, they get lost there
broker_restarted the broker at {server} ended all its connections at once: it restarted, or its
    host did => look into its log; let it keep its messages on disk (mosquitto: persistence,
    autosave_interval)
bridge_left_out the bridge {client} got it at one broker and did not publish it at the other =>
    look at the bridge's QoS and queue, and at what it does when its other side is gone
not_acknowledged {client} left messages unacknowledged: the broker sends no more to it => look into
    that program: it hangs, or does not acknowledge what it handles
not_allowed nothing of this topic or client reaches {client}: a rule of the broker may forbid it =>
    compare the broker's rules with what {client} subscribes to
queue_full {client} was away, and the broker keeps only so many messages for it => raise the
    broker's queue (mosquitto: max_queued_messages), or let the client come sooner
not_kept {client} was away, and the broker need not keep for it what comes at QoS 0 => publish and
    subscribe at QoS 1, or keep the client connected
broker_lost_it the broker took it on and did not pass it on to {client} => look into the broker's
    log at that time; at QoS 0 it may do so
""",
        1,
    )
}

# Reason codes of level 5, and return codes of CONNACK below it.
_RETURN_CODES = """
protocol version not accepted; client id refused; server unavailable; user name or password
wrong; not authorized
"""  # from 1 on
_REASONS = """
unspecified error; malformed packet; protocol error; an error of this server's own; protocol
version not supported; client id not valid; user name or password wrong; not authorized; server
unavailable; server busy; banned; server shuts down; bad way to authenticate; keep alive passed;
another connection took its place; filter not valid; topic not valid; packet id in use; packet id
not known; more in flight than the receive maximum; topic alias not valid; packet too large; too
many messages a second; quota exceeded; ended by an administrator; payload format not valid;
retain not supported; QoS not supported; use another server; the server has moved; shared
subscriptions not supported; too many connections a second; longest time of a connection is over;
subscription ids not supported; wildcards not supported
"""  # from 0x80 on
_WORDS = {
    first + at: " ".join(text.split())
    for first, texts in ((1, _RETURN_CODES), (0x80, _REASONS))
    for at, text in enumerate(texts.split(";"))
}
# What operators cause on purpose, or other findings report.
NO_TROUBLE = (0x8B, 0x8D, 0x8E, 0x98, 0x9C, 0x9D, 0xA0)


def words(code):
    """Such as "0x95 (packet too large)"."""
    text = _WORDS.get(code)
    number = "%d" % code if code < 0x80 else "0x%02X" % code
    return "%s (%s)" % (number, text) if text else number
