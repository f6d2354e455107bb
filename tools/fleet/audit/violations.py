"""Which statement was broken, by whom, in which packet.

Each check looks at all packets of a partition at once and yields (rows, requirement,
text).  What a capture does not show (a session that began before it, bytes that are
missing) is never held against anyone.  Ids are those of docs/requirements.tsv.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..columns import begins, marked, over, table, whole
from .messages import GRACE_US, PUBACK, PUBLISH, PUBREC, PUBREL, may_be_repeat
from .quota import Quota
from .resumed import is_answer_seen, is_renumbered, not_repeated
from .rows import FAR, TYPES, dictionary, running_max_breaks
from .rules import BREACHES
from .sessions import allowed_silence_us
from .traffic import flags

_ACKS = [TYPES[n] for n in ("PUBACK", "PUBREC", "PUBCOMP", "SUBACK", "UNSUBACK", "CONNACK")]
_FLAGLESS = [*_ACKS, *(TYPES[n] for n in ("CONNECT", "PINGREQ", "PINGRESP", "DISCONNECT"))]
_REQUESTS = {"PUBREL": "31-3.6-PUBREL", "SUBSCRIBE": "31-3.8-SUB", "UNSUBSCRIBE": "31-3.10-UNSUB"}
_NO_PACKETS = [TYPES[n] for n in ("GAP", "MALFORMED", "NOT_MQTT", "UNREAD", "ENCRYPTED")]


def violations(rows, sessions, gaps, flows, clock, late):
    """The `violations` table of all checks that need only one client's packets; `late` are
    those that `silences` found."""
    found = [
        *_packets(rows, sessions),
        *_errors(rows, sessions, gaps),
        *_connects(rows, sessions),
        *_connacks(rows, sessions),
        *_first_and_last(rows, gaps),
        *_repeats(rows, sessions, gaps, flows),
        *_strays(rows, sessions, gaps, flows),
        *_orders(rows, flows),
        *_unreleased(rows, flows),
        *_quotas(rows, sessions, gaps, flows, clock),
        *_not_repeated(rows, sessions, flows),
        *late,
    ]
    return _table(rows, found)


def _table(rows, found):
    # Of (rows or a mask, requirement, text, and what else makes it sure): the requirement is one
    # for all, one for each, or one for QoS 1 and one for 2; the text one for all or for each.
    places, requirement, text, rules = [np.empty(0, np.int64)], [], [], []
    for some, ids, texts, *reason in found:
        some = np.asarray(some)
        some = np.flatnonzero(some) if some.dtype == bool else some.astype(np.int64)
        if isinstance(ids, tuple):
            ids = [ids[qos != 1] for qos in rows.qos[some].tolist()]
        ids = [ids] * len(some) if isinstance(ids, str) else list(ids)
        places.append(some)
        requirement += ids
        text += [texts] * len(some) if isinstance(texts, str) else list(texts)
        rules += [BREACHES.get(one, BREACHES["itself"]) for one in (reason * len(some) or ids)]
    at = np.concatenate(places)
    own = ("site", "client_id", "connection", "capture", "offset", "topic")
    columns = rows.columns(own, at) | {
        "requirement": requirement,
        "by": np.where(rows.direction[at] == 0, "client", "broker").tolist(),
        "ts": rows.ts[at],
        "number": rows.number[at],
        "packet_id": pa.array(rows.packet_id[at], pa.int64(), mask=rows.packet_id[at] < 0),
        "detail": text,
        "sure": [one.sure for one in rules],
        "why": [one.why for one in rules],
    }
    return table(columns, schemas.VIOLATIONS)


def _not_repeated(rows, sessions, flows):
    at = not_repeated(rows, sessions, flows)
    renumbered = is_renumbered(rows, sessions, flows, at)
    text = np.where(renumbered, "sent again with another packet id", "not sent again")
    yield at, "MQTT-4.4.0-1", ["%s when the session went on" % one for one in text.tolist()]


def _split(is_moved, at, *said):
    # First what one connection shows, then what takes two.
    yield at[~is_moved], *said
    yield at[is_moved], *said, "moved"


def _packets(rows, sessions):
    # What one packet shows.
    kind, qos, is_publish = rows.kind, rows.qos, rows.kind == PUBLISH
    # Level 3 sets DUP when one of these is sent again (31-2.1-DUP); later levels do not.
    # Without CONNECT, level 4 may be 3.
    is_told = sessions.hello.row[rows.connection] >= 0
    with_dup = ((rows.level <= 3) | ~is_told) & (rows.flags == 0xA)
    for name, requirement in _REQUESTS.items():
        bad = (kind == TYPES[name]) & (rows.flags != 2) & ~with_dup
        yield bad, requirement, "%s without the QoS bits 01" % name
    bad = np.isin(kind, _FLAGLESS) & (rows.flags != 0)
    yield bad, "31-2.6-UNUSED", "unused bits of the first byte are set"
    has_id = np.isin(kind, [TYPES[name] for name in ("SUBSCRIBE", "UNSUBSCRIBE")])
    has_id |= is_publish & (qos > 0) & (qos < 3)
    yield (rows.packet_id == 0) & has_id, "31-2.4-ID", "packet id 0"
    yield is_publish & (qos == 3), "31-2.1-QOS3", "PUBLISH with QoS 3"
    yield is_publish & (qos == 0) & rows.dup, "MQTT-4.3.1-1", "PUBLISH at QoS 0 with DUP"
    names = rows.topics.cast(pa.string())
    wild = _of_topics(pc.match_substring_regex(names, "[+#\\x00]"), rows)
    yield is_publish & wild, "31-3.3-WILD", "topic with a wildcard or NUL"
    # Level 5 may leave the topic to an alias; -1 is a level that was not captured.
    empty = _of_topics(pc.equal(names, ""), rows) & np.isin(rows.level, (3, 4))
    yield is_publish & empty, "31-2.2-TOPIC", "empty topic"


def _of_topics(is_such, rows):
    # For each row; most captures have no such topic.
    is_such = flags(is_such)
    return np.append(is_such, False)[rows.topic] if is_such.any() else np.zeros(len(rows), bool)


def _errors(rows, sessions, gaps):
    # After missing bytes, and without the beginning, it may be no packet.
    def clear(at):
        connection = rows.connection[at]
        is_whole = (sessions.hello.row >= 0)[connection]
        return at[is_whole & ~gaps.any_since(rows.first_of[connection], at)]

    malformed = clear(np.flatnonzero(rows.kind == TYPES["MALFORMED"]))
    yield malformed, "31-2.1-LEN", "no packet can start with these bytes"
    is_error = flags(pc.is_valid(whole(rows.table["error"])))[rows.source]
    at = clear(np.flatnonzero(is_error))
    texts = rows.strings("error", at).to_pylist()
    yield at, ["31-2.2-TOPIC" if "topic" in text else "31-2.1-LEN" for text in texts], texts


def _connects(rows, sessions):
    hello = sessions.hello
    chosen = np.flatnonzero(hello.has_some)
    # At level 3 an id has 1 to 23 characters; above, any number.
    name = rows.strings("client_id", hello.row[chosen]).cast(pa.string())
    size = pc.utf8_length(name).fill_null(1).to_numpy()
    size = np.where(sessions.level[chosen] == 3, size, 1)
    is_bad = flags(hello.mapped(lambda one: any(_faults_of(one, 1)), pa.bool_()))[chosen]
    is_bad |= (size < 1) | (size > 23)
    for one in np.flatnonzero(is_bad).tolist():
        connection = chosen[one]
        for fault in _faults_of(hello[connection], int(size[one])):
            yield hello.row[[connection]], *fault


def _faults_of(hello, size):
    level, flags = hello.get("level", 3), hello.get("flags", 2)
    if level == 3 and not 1 <= size <= 23:
        yield "31-3.1-CLIENTID", "client id of %d characters" % size
    if flags & 1 or (flags & 0x38 and not flags & 4) or flags & 0x18 == 0x18:
        yield "31-2.2-FLAGS", "connect flags 0x%02X" % flags
    if flags & 0xC0 == 0x40 and level < 5:
        yield "31-2.2-USER", "password without a user name"
    protocol = hello.get("protocol")
    if (protocol == "MQIsdp") != (level == 3):
        yield "31-2.2-PROTO", "protocol %s with level %d" % (protocol, level)


def _connacks(rows, sessions):
    # The first packet of the server, where the beginning of the connection was captured.
    # At level 5 AUTH may come first.
    is_auth = (rows.kind == TYPES["AUTH"]) & (rows.level == 5)
    is_packet = (rows.is_packet & ~is_auth) | (rows.kind == TYPES["GAP"])
    first = rows.firsts(np.flatnonzero((rows.direction == 1) & is_packet))
    # Only the server's SYN shows where its bytes begin.
    is_begun = ((sessions.hello.row >= 0) & rows.is_opened(1))[rows.connection[first]]
    is_right = (rows.kind[first] == TYPES["CONNACK"]) | (rows.kind[first] == TYPES["GAP"])
    bad = first[is_begun & ~is_right]
    yield bad, "31-3.2-CONNACK", "the server's first packet is no CONNACK"
    long = (rows.kind == TYPES["CONNACK"]) & (rows.packet_bytes != 4) & np.isin(rows.level, (3, 4))
    yield long, "31-3.2-CONNACK", "CONNACK of another length than 4 bytes"


def _first_and_last(rows, gaps):
    # CONNECT comes first, and once.  After DISCONNECT the client sends nothing.
    kind, connection = rows.kind, rows.connection
    is_bytes = rows.is_packet | np.isin(kind, _NO_PACKETS)
    at = np.flatnonzero((rows.direction == 0) & is_bytes)
    first = rows.firsts(at)
    bad = first[rows.is_opened(0)[connection[first]] & rows.is_packet[first]]
    bad = bad[kind[bad] != TYPES["CONNECT"]]
    yield bad, "311-3.1.0-1", "the client's first packet is no CONNECT"
    again = at[kind[at] == TYPES["CONNECT"]]
    again = again[~begins(connection[again])]
    again = again[~gaps.any_since(rows.first_of[connection[again]], again)]
    yield again, "311-3.1.0-2", "a second CONNECT on the same connection"
    byes = at[kind[at] == TYPES["DISCONNECT"]]
    goodbye = over(np.minimum, len(rows.client_of), connection[byes], byes, FAR)
    behind = at[rows.is_packet[at] & (at > goodbye[connection[at]])]
    yield behind, "311-3.14.4-2", "sent behind DISCONNECT"


def _repeats(rows, sessions, gaps, flows):
    row, first = flows.row, flows.first
    repeat = np.flatnonzero(flows.is_repeat)
    unmarked = repeat[~rows.dup[row[repeat]]]
    # Was a PUBREL of its message sent before?
    count = np.cumsum((flows.kind == PUBREL) & (flows.flow >= 0))
    at_start = np.append(np.append(0, count)[flows.first], FAR)  # that of no message: -1
    after_release = repeat[(count > at_start[flows.flow])[repeat]]
    side = rows.direction[flows.publish_row]

    # A message that takes the id of one that is still in flight.
    later = 1 + np.flatnonzero((flows.is_reused & ~flows.is_complete & flows.is_known)[:-1])
    reuse = row[first[later]]
    # At level 3 a new connection may be a new session, with all ids free again.
    last = flows.last_row[later - 1]
    moved = rows.connection[reuse] != rows.connection[last]
    is_assumed = moved & (rows.level[reuse] == 3)
    is_sure = is_answer_seen(rows, side[later - 1], last)
    chosen = (~moved & is_sure, ~moved & ~is_sure, is_assumed, moved & ~is_assumed)
    in_use = "packet id of a message that is not acknowledged yet"
    for some, why in zip(chosen, ((), ("last",), ("assumed",), ("moved",)), strict=True):
        yield reuse[some], ("MQTT-4.3.2-1", "MQTT-4.3.3-1"), in_use, *why
    bare, released = "PUBLISH sent again without DUP", "PUBLISH sent again after its PUBREL"
    yield from _split(flows.is_moved[unmarked], row[unmarked], "31-2.1-DUP", bare)
    yield from _split(flows.is_moved[after_release], row[after_release], "MQTT-4.3.3-6", released)
    is_again = may_be_repeat(rows, sessions, gaps, flows.publish_row)
    again = rows.dup[flows.publish_row] & ~is_again & ~marked(len(first), later)
    text = "first PUBLISH of a message with DUP"
    yield row[first[again]], ("MQTT-4.3.2-2", "MQTT-4.3.3-2"), text


def _quotas(rows, sessions, gaps, flows, clock):
    if not sessions.receive_max.any():
        return
    beyond = Quota(rows, flows).over(rows, sessions, gaps)
    beyond = beyond[~clock.is_twice(beyond)]
    for side, requirement in enumerate(("MQTT-3.3.4-7", "MQTT-3.3.4-9")):
        at = beyond[rows.direction[beyond] == side]
        limits = sessions.receive_max[rows.connection[at], 1 - side].tolist()
        texts = ["more than %d unanswered, the receive maximum" % limit for limit in limits]
        yield at, requirement, texts


def _strays(rows, sessions, gaps, flows):
    starts = sessions.first_rows()
    tells = np.flatnonzero(rows.kind != TYPES["TCP_RESET"])
    of = rows.connection[tells], rows.direction[tells]
    last = over(np.maximum, (len(rows.client_of), 2), of, tells, -1)
    for kind, requirement in ((PUBACK, "MQTT-4.3.2-4"), (PUBREC, "MQTT-4.3.3-8")):
        place = np.flatnonzero((flows.flow < 0) & (flows.kind == kind))
        at = flows.row[place[~flows.is_near_publish(place)]]
        connection = rows.connection[at]
        # Of a connection with one side in the capture every answer is a stray.
        clear = sessions.is_known[connection] & ~sessions.is_one_way[connection]
        clear &= ~gaps.any_since(starts[connection], at)
        # Bytes missing at the end of the other side leave no trace.
        clear &= last[connection, 1 - rows.direction[at]] > at
        # A gap behind it may hide the PUBLISH, too, as packets cross.
        ends = rows.first_of[connection + 1] - 1
        clear &= ~gaps.any_since(starts[connection], np.minimum(at + 64, ends))
        is_moved = starts[connection] < rows.first_of[connection]
        said = requirement, "acknowledges a message that was never sent"
        yield from _split(is_moved[clear], at[clear], *said)


def _unreleased(rows, flows):
    # A receiver may wait for PUBREL before it hands a message on: without PUBREL it is lost.
    received = flows.stage_row["pubrec"]
    waits = (flows.qos == 2) & (received < FAR) & (flows.stage_row["pubrel"] == FAR)
    # Its answer proves, too, that it came.
    waits &= ~flows.is_complete & ~flows.is_reused & flows.is_known
    at, received = flows.publish_row[waits], received[waits]
    side, where = rows.direction[at], rows.connection[received]
    packet = np.flatnonzero(rows.is_packet)
    of = rows.direction[packet], rows.connection[packet]
    last = over(np.maximum, (2, len(rows.client_of)), of, rows.ts[packet], 0)
    is_late = last[side, where] >= rows.ts[received] + GRACE_US
    at, received, side, where = (one[is_late] for one in (at, received, side, where))
    # What it answered it had read, with all that came before.
    is_here = flows.answer_row < FAR
    row, answer = flows.publish_row[is_here], flows.answer_row[is_here]
    row = row[rows.connection[row] == rows.connection[answer]]
    of = 1 - rows.direction[row], rows.connection[row]
    is_read = over(np.maximum, last.shape, of, row, -1)[side, where] > received
    said = "MQTT-4.3.3-4", "PUBREC came, and was not answered by PUBREL"
    yield at[is_read], *said
    yield at[~is_read], *said, "unread"


def _orders(rows, flows):
    once = (flows.sent == 1) & flows.is_known
    from_broker = rows.direction[flows.publish_row] == 1
    puback, pubrec = flows.stage_row["puback"], flows.stage_row["pubrec"]
    pubrel = flows.stage_row["pubrel"]
    at_1, at_2 = once & (flows.qos == 1), once & (flows.qos == 2)
    sent, late = flows.publish_row, "%s before that of an earlier %s"
    checks = (
        (at_1 & from_broker, sent, puback, "MQTT-4.6.0-2", late % ("PUBACK", "PUBLISH")),
        (at_2 & from_broker, sent, pubrec, "MQTT-4.6.0-3", late % ("PUBREC", "PUBLISH")),
        (at_2 & ~from_broker, pubrec, pubrel, "MQTT-4.6.0-4", late % ("PUBREL", "PUBREC")),
    )
    # Effects must come in the order of their causes, on the same connection.
    for mask, cause, effect, requirement, text in checks:
        mask &= (cause < FAR) & (effect < FAR)
        cause, effect = cause[mask], effect[mask]
        same = rows.connection[cause] == rows.connection[effect]
        # If each stands in the place of its cause, they are in order without sorting.
        follows = np.full(len(rows), -1)
        follows[cause[same]] = effect[same]
        effect = follows[follows >= 0]
        bad = running_max_breaks(rows.connection[effect], effect)
        yield effect[bad], requirement, text
    # 4.6.0-1: the first repeat of each message on a connection, in the order of the messages.
    again = np.flatnonzero(flows.is_repeat & flows.is_moved & (flows.flow >= 0))
    again = again[rows.direction[flows.row[again]] == 0]
    again = again[np.argsort(flows.row[again])]
    begun = flows.publish_row[flows.flow[again]]
    bad = running_max_breaks(rows.connection[flows.row[again]], begun)
    yield flows.row[again][bad], "MQTT-4.6.0-1", "sent again before an earlier message"


def silences(rows, sessions, gaps, clock):
    """-> (longest silence and late count of each connection, violations)."""
    count = len(rows.client_of)
    at = np.flatnonzero((rows.direction == 0) & rows.is_packet)
    follows = np.flatnonzero(~begins(rows.connection[at]))
    row, before = at[follows], at[follows - 1]
    # Packets that the capture missed are no silence.
    seen = ~gaps.touch(before, row)
    row, before = row[seen], before[seen]
    silence = rows.ts[row] - rows.ts[before]
    connection = rows.connection[row]
    longest = over(np.maximum, count, connection, silence, 0)
    limit = sessions.keep_alive_s
    allowed = np.where(limit > 0, allowed_silence_us(limit), FAR)
    at = np.flatnonzero(silence > allowed[connection])
    at = at[~np.isin(row[at], clock.forward)]
    row, before, silence, connection = row[at], before[at], silence[at], connection[at]
    texts = [
        "silent for %.1f s, keep alive %d s" % (us / 1e6, limit_s)
        for us, limit_s in zip(silence.tolist(), limit[connection].tolist(), strict=True)
    ]
    late = np.bincount(connection, minlength=count)
    captures, _ = dictionary(rows.strings("capture", np.concatenate((before, row))))
    is_apart = captures[: len(row)] != captures[len(row) :]
    said = np.array(texts, object)
    return (longest, late), [
        (row[~is_apart], "31-2.2-KA", said[~is_apart]),
        (row[is_apart], "31-2.2-KA", said[is_apart], "files"),
    ]
