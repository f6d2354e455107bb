"""Which statement was broken, by whom, in which packet.

Each check looks at all packets of a partition at once and yields (rows, requirement,
text).  What a capture does not show (a session that began before it, bytes that are
missing) is never held against anyone.  Ids are those of docs/requirements.tsv.
"""

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..columns import begins, marked, over, table, whole
from .messages import GRACE_US, PUBACK, PUBLISH, PUBREC, PUBREL, may_be_repeat
from .quota import Quota
from .resumed import is_answer_seen, is_renumbered, not_repeated
from .rows import FAR, TYPES, any_of, dictionary, running_max_breaks
from .rules import BREACHES
from .sessions import allowed_silence_us

_ACKS = [TYPES[n] for n in ("PUBACK", "PUBREC", "PUBCOMP", "SUBACK", "UNSUBACK", "CONNACK")]
_FLAGLESS = [*_ACKS, *(TYPES[n] for n in ("CONNECT", "PINGREQ", "PINGRESP", "DISCONNECT"))]
_REQUESTS = {
    "PUBREL": "31-3.6-PUBREL",
    "SUBSCRIBE": "31-3.8-SUB",
    "UNSUBSCRIBE": "31-3.10-UNSUB",
}

_NO_PACKETS = ("GAP", "MALFORMED", "NOT_MQTT", "UNREAD", "ENCRYPTED")


def violations(rows, sessions, gaps, flows, late):
    """The `violations` table of all checks that need only one client's packets; `late` are
    those that `silences` found."""
    found = []
    found += _packet_flags(rows, sessions)
    found += _packet_ids(rows)
    found += _publishes(rows)
    found += _errors(rows, sessions, gaps)
    found += _connects(rows, sessions)
    found += _connacks(rows, sessions)
    found += _first_and_last(rows, gaps)
    found += _repeats(rows, sessions, gaps, flows)
    found += _strays(rows, sessions, gaps, flows)
    found += _orders(rows, flows)
    found += _unreleased(rows, flows)
    found += _quotas(rows, sessions, gaps, flows)
    found.append(_not_repeated(rows, sessions, flows))
    found += late
    return _table(rows, [entry for entry in found if len(entry[0])])


def _table(rows, found):
    at = np.concatenate([np.empty(0, np.int64), *(np.asarray(entry[0]) for entry in found)])
    at = at.astype(np.int64)
    requirement, text, rules = [], [], []
    for some, ids, texts, *reason in found:
        ids = [ids] * len(some) if isinstance(ids, str) else list(ids)
        requirement += ids
        text += [texts] * len(some) if isinstance(texts, str) else list(texts)
        rules += [BREACHES.get(one, BREACHES["itself"]) for one in (reason * len(some) or ids)]
    by = np.where(rows.direction[at] == 0, "client", "broker")
    columns = {
        "requirement": requirement,
        "by": by.tolist(),
        "ts": rows.ts[at],
        "number": rows.number[at],
        "packet_id": pa.array(rows.packet_id[at], pa.int64(), mask=rows.packet_id[at] < 0),
        "detail": text,
        "sure": [one.sure for one in rules],
        "why": [one.why for one in rules],
    }
    own = ("site", "client_id", "connection", "capture", "offset", "topic")
    columns.update(rows.columns(own, at))
    return table(columns, schemas.VIOLATIONS)


def _not_repeated(rows, sessions, flows):
    at = not_repeated(rows, sessions, flows)
    renumbered = is_renumbered(rows, sessions, flows, at)
    text = np.where(renumbered, "sent again with another packet id", "not sent again")
    return at, "MQTT-4.4.0-1", ["%s when the session went on" % one for one in text.tolist()]


def _split(is_moved, at, *said):
    # What takes two connections apart from what one shows.
    yield at[~is_moved], *said
    yield at[is_moved], *said, "moved"


def _packet_flags(rows, sessions):
    found = []
    # Level 3 sets DUP when one of these is sent again (31-2.1-DUP); later levels do not.
    # Without CONNECT, level 4 may be 3.
    is_told = sessions.hello.row[rows.connection] >= 0
    with_dup = ((rows.level <= 3) | ~is_told) & (rows.flags == 0xA)
    for name, requirement in _REQUESTS.items():
        bad = (rows.kind == TYPES[name]) & (rows.flags != 2) & ~with_dup
        found.append((np.flatnonzero(bad), requirement, "%s without the QoS bits 01" % name))
    bad = any_of(rows.kind, _FLAGLESS) & (rows.flags != 0)
    found.append((np.flatnonzero(bad), "31-2.6-UNUSED", "unused bits of the first byte are set"))
    return found


def _packet_ids(rows):
    with_id = [TYPES[name] for name in ("SUBSCRIBE", "UNSUBSCRIBE")]
    bad = (rows.packet_id == 0) & (
        any_of(rows.kind, with_id) | ((rows.kind == PUBLISH) & (rows.qos > 0) & (rows.qos < 3))
    )
    return [(np.flatnonzero(bad), "31-2.4-ID", "packet id 0")]


def _publishes(rows):
    publish = rows.kind == PUBLISH
    names = rows.topics.cast(pa.string())
    wild = _flags(pc.match_substring_regex(names, "[+#\\x00]"))
    empty = _flags(pc.equal(names, ""))
    return [
        (np.flatnonzero(publish & (rows.qos == 3)), "31-2.1-QOS3", "PUBLISH with QoS 3"),
        (
            np.flatnonzero(publish & (rows.qos == 0) & rows.dup),
            "MQTT-4.3.1-1",
            "PUBLISH at QoS 0 with DUP",
        ),
        (
            np.flatnonzero(publish & _of_topics(wild, rows)),
            "31-3.3-WILD",
            "topic with a wildcard or NUL",
        ),
        # Level 5 may leave the topic to an alias; -1 is a level that was not captured.
        (
            np.flatnonzero(publish & _of_topics(empty, rows) & any_of(rows.level, (3, 4))),
            "31-2.2-TOPIC",
            "empty topic",
        ),
    ]


def _of_topics(is_such, rows):
    # For each row; most captures have no such topic.
    return np.append(is_such, False)[rows.topic] if is_such.any() else np.zeros(len(rows), bool)


def _flags(array):
    return array.to_numpy(zero_copy_only=False).astype(bool)


def _errors(rows, sessions, gaps):
    # Behind missing bytes, and where the beginning is missing, it may not be a packet.
    def clear(at):
        connection = rows.connection[at]
        is_whole = (sessions.hello.row >= 0)[connection]
        return at[is_whole & ~gaps.any_since(rows.first_of[connection], at)]

    malformed = clear(np.flatnonzero(rows.kind == TYPES["MALFORMED"]))
    found: list[tuple] = [(malformed, "31-2.1-LEN", "no packet can start with these bytes")]
    error = rows.table["error"]
    if error.null_count == len(error):
        return found
    is_error = ~_flags(pc.is_null(whole(error)))[rows.source]
    at = clear(np.flatnonzero(is_error))
    texts = rows.strings("error", at).to_pylist()
    ids = ["31-2.2-TOPIC" if "topic" in text else "31-2.1-LEN" for text in texts]
    found.append((at, ids, texts))
    return found


def _connects(rows, sessions):
    hello, at, ids, texts = sessions.hello, [], [], []
    chosen = np.flatnonzero(hello.has_some)
    # At level 3 an id has 1 to 23 characters; above, any number.
    name = rows.strings("client_id", hello.row[chosen]).cast(pa.string())
    size = pc.utf8_length(name).fill_null(1).to_numpy()
    size = np.where(sessions.level[chosen] == 3, size, 1)
    is_bad = _flags(hello.mapped(lambda one: bool(_faults_of(one, 1)), pa.bool_()))[chosen]
    is_bad |= (size < 1) | (size > 23)
    for one in np.flatnonzero(is_bad).tolist():
        connection = chosen[one]
        for requirement, text in _faults_of(hello[connection], int(size[one])):
            at.append(hello.row[connection])
            ids.append(requirement)
            texts.append(text)
    return [(at, ids, texts)]


def _faults_of(hello, size):
    level = hello.get("level", 3)
    return _connect_faults(level, hello.get("flags", 2), hello.get("protocol"), size)


@lru_cache(4096)  # the CONNECTs of a fleet are alike
def _connect_faults(level, flags, protocol, size):
    return list(_find_connect_faults(level, flags, protocol, size))


def _find_connect_faults(level, flags, protocol, size):
    if level == 3 and not 1 <= size <= 23:
        yield "31-3.1-CLIENTID", "client id of %d characters" % size
    if flags & 1 or (flags & 0x38 and not flags & 4) or flags & 0x18 == 0x18:
        yield "31-2.2-FLAGS", "connect flags 0x%02X" % flags
    if flags & 0xC0 == 0x40 and level < 5:
        yield "31-2.2-USER", "password without a user name"
    if (protocol == "MQIsdp") != (level == 3):
        yield "31-2.2-PROTO", "protocol %s with level %d" % (protocol, level)


def _connacks(rows, sessions):
    # The first packet of the server, where the beginning of the connection was captured.
    # At level 5 the two may first settle by AUTH who the client is.
    is_auth = (rows.kind == TYPES["AUTH"]) & (rows.level == 5)
    is_packet = (rows.is_packet & ~is_auth) | (rows.kind == TYPES["GAP"])
    at = np.flatnonzero((rows.direction == 1) & is_packet)
    connection = rows.connection[at]
    first = at[begins(connection)]
    # Only the server's own SYN tells where its bytes begin.
    is_begun = ((sessions.hello.row >= 0) & rows.is_opened(1))[rows.connection[first]]
    is_right = (rows.kind[first] == TYPES["CONNACK"]) | (rows.kind[first] == TYPES["GAP"])
    bad = first[is_begun & ~is_right]
    long = np.flatnonzero(
        (rows.kind == TYPES["CONNACK"]) & (rows.packet_bytes != 4) & any_of(rows.level, (3, 4))
    )
    return [
        (bad, "31-3.2-CONNACK", "the server's first packet is no CONNACK"),
        (long, "31-3.2-CONNACK", "CONNACK of another length than 4 bytes"),
    ]


def _first_and_last(rows, gaps):
    # CONNECT comes first, and once; behind DISCONNECT comes nothing more of the client.
    kind, connection = rows.kind, rows.connection
    is_bytes = rows.is_packet | any_of(kind, [TYPES[name] for name in _NO_PACKETS])
    at = np.flatnonzero((rows.direction == 0) & is_bytes)
    first = at[np.diff(connection[at], prepend=-1) != 0]
    bad = first[rows.is_opened(0)[connection[first]] & rows.is_packet[first]]
    bad = bad[kind[bad] != TYPES["CONNECT"]]
    again = at[kind[at] == TYPES["CONNECT"]]
    again = again[np.diff(connection[again], prepend=-1) == 0]
    again = again[~gaps.any_since(rows.first_of[connection[again]], again)]
    byes = at[kind[at] == TYPES["DISCONNECT"]]
    goodbye = over(np.minimum, len(rows.client_of), connection[byes], byes, FAR)
    behind = at[rows.is_packet[at] & (at > goodbye[connection[at]])]
    return [
        (bad, "311-3.1.0-1", "the client's first packet is no CONNECT"),
        (again, "311-3.1.0-2", "a second CONNECT on the same connection"),
        (behind, "311-3.14.4-2", "sent behind DISCONNECT"),
    ]


def _repeats(rows, sessions, gaps, flows):
    row, first = flows.row, flows.first
    qos = rows.qos[row]
    repeat = np.flatnonzero(flows.is_repeat)
    unmarked = repeat[~rows.dup[row[repeat]]]
    after_release = repeat[_released(flows)[repeat]]
    side = rows.direction[flows.publish_row]

    # A message that takes the id of one that is still in flight.
    later = 1 + np.flatnonzero(
        flows.is_reused[:-1] & ~flows.is_complete[:-1] & flows.is_known[:-1]
    )
    reuse = first[later]
    # At level 3 a new connection may be a new session, with all ids free again.
    last = flows.last_row[later - 1]
    moved = rows.connection[row[reuse]] != rows.connection[last]
    is_assumed = moved & (rows.level[row[reuse]] == 3)
    is_sure = is_answer_seen(rows, side[later - 1], last)
    chosen = (~moved & is_sure, ~moved & ~is_sure, is_assumed, moved & ~is_assumed)
    is_reuse = marked(len(first), later)
    is_again = may_be_repeat(rows, sessions, gaps, flows.publish_row)
    again = first[rows.dup[flows.publish_row] & ~is_again & ~is_reuse]
    in_use = "packet id of a message that is not acknowledged yet"
    reuse_id = np.where(qos[reuse] == 1, "MQTT-4.3.2-1", "MQTT-4.3.3-1")
    reused = [
        (row[reuse[some]], reuse_id[some].tolist(), in_use, *why)
        for some, why in zip(chosen, ((), ("last",), ("assumed",), ("moved",)), strict=True)
    ]
    is_moved = flows.is_moved
    released = row[after_release], "MQTT-4.3.3-6", "PUBLISH sent again after its PUBREL"
    bare = row[unmarked], "31-2.1-DUP", "PUBLISH sent again without DUP"
    return [
        *reused,
        *_split(is_moved[unmarked], *bare),
        *_split(is_moved[after_release], *released),
        (
            row[again],
            np.where(qos[again] == 1, "MQTT-4.3.2-2", "MQTT-4.3.3-2").tolist(),
            "first PUBLISH of a message with DUP",
        ),
    ]


def _quotas(rows, sessions, gaps, flows):
    if not sessions.receive_max.any():
        return
    over = Quota(rows, flows).over(rows, sessions, gaps)
    for side, requirement in enumerate(("MQTT-3.3.4-7", "MQTT-3.3.4-9")):
        at = over[rows.direction[over] == side]
        limits = sessions.receive_max[rows.connection[at], 1 - side].tolist()
        texts = ["more than %d unanswered, the receive maximum" % limit for limit in limits]
        yield at, requirement, texts


def _released(flows):
    # For each packet: was a PUBREL of its message sent before?
    count = np.cumsum((flows.kind == PUBREL) & (flows.flow >= 0))
    at_start = np.concatenate(([0], count))[flows.first]
    return (flows.flow >= 0) & (
        count > at_start[np.maximum(flows.flow, 0)]
        if len(flows.first)
        else np.zeros(len(flows.row), bool)
    )


def _strays(rows, sessions, gaps, flows):
    found: list[tuple] = []
    if not ((flows.flow < 0) & any_of(flows.kind, (PUBACK, PUBREC))).any():
        return found
    starts = sessions.first_rows()
    last = np.full((len(rows.client_of), 2), -1)
    tells = np.flatnonzero(rows.kind != TYPES["TCP_RESET"])
    last[rows.connection[tells], rows.direction[tells]] = tells
    for kind, requirement in ((PUBACK, "MQTT-4.3.2-4"), (PUBREC, "MQTT-4.3.3-8")):
        place = np.flatnonzero((flows.flow < 0) & (flows.kind == kind))
        at = flows.row[place[~flows.is_near_publish(place)]]
        connection = rows.connection[at]
        # Of a connection with one side in the capture every answer is a stray.
        clear = sessions.is_known[connection] & ~sessions.is_one_way[connection]
        clear &= ~gaps.any_since(starts[connection], at)
        # Nothing tells of bytes missing at the end of what was captured of the other side.
        clear &= last[connection, 1 - rows.direction[at]] > at
        # A gap behind it may hide the PUBLISH just as well: packets cross.
        ends = rows.first_of[connection + 1] - 1
        clear &= ~gaps.any_since(starts[connection], np.minimum(at + 64, ends))
        is_moved = starts[connection] < rows.first_of[connection]
        said = requirement, "acknowledges a message that was never sent"
        found += _split(is_moved[clear], at[clear], *said)
    return found


def _unreleased(rows, flows):
    # Receivers may wait for PUBREL before they hand a message on: without one it is lost.
    received = flows.stage_row["pubrec"]
    waits = (flows.qos == 2) & (received < FAR) & (flows.stage_row["pubrel"] == FAR)
    # That it came is told by the answer to it, too.
    waits &= ~flows.is_complete & ~flows.is_reused & flows.is_known
    if not waits.any():
        return []
    at, received = flows.publish_row[waits], received[waits]
    side, where = rows.direction[at], rows.connection[received]
    last = np.zeros((2, len(rows.client_of)), np.int64)
    at_all = np.flatnonzero(rows.is_packet)
    np.maximum.at(last, (rows.direction[at_all], rows.connection[at_all]), rows.ts[at_all])
    is_late = last[side, where] >= rows.ts[received] + GRACE_US
    at, received, side, where = (one[is_late] for one in (at, received, side, where))
    is_read = _last_answered(rows, flows)[side, where] > received
    text = "PUBREC came, and was not answered by PUBREL"
    return [(at[is_read], "MQTT-4.3.3-4", text), (at[~is_read], "MQTT-4.3.3-4", text, "unread")]


def _last_answered(rows, flows):
    # [side, connection]: the last PUBLISH there that this side answered, and so had read.
    found = np.full((2, len(rows.client_of)), -1)
    row, answer = flows.publish_row, flows.answer_row
    is_here = answer < FAR
    row, answer = row[is_here], answer[is_here]
    is_here = rows.connection[row] == rows.connection[answer]
    row = row[is_here]
    np.maximum.at(found, (1 - rows.direction[row], rows.connection[row]), row)
    return found


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
    found = [_order(rows, *check) for check in checks]
    # 4.6.0-1: the first repeat of each message on a connection, in the order of the messages.
    again = np.flatnonzero(flows.is_repeat & flows.is_moved & (flows.flow >= 0))
    again = again[rows.direction[flows.row[again]] == 0]
    again = again[np.argsort(flows.row[again])]
    begun = flows.publish_row[flows.flow[again]]
    bad = running_max_breaks(rows.connection[flows.row[again]], begun)
    found.append((flows.row[again][bad], "MQTT-4.6.0-1", "sent again before an earlier message"))
    return found


def _order(rows, mask, cause, effect, requirement, text):
    # Effects must come in the order of their causes, on the same connection.
    mask = mask & (cause < FAR) & (effect < FAR)
    cause, effect = cause[mask], effect[mask]
    same = rows.connection[cause] == rows.connection[effect]
    cause, effect = cause[same], effect[same]
    # Each in its cause's place is in order without sorting.
    follows = np.full(len(rows), -1)
    follows[cause] = effect
    effect = follows[follows >= 0]
    return effect[running_max_breaks(rows.connection[effect], effect)], requirement, text


def silences(rows, sessions, gaps, clock):
    """-> (longest silence and late count of each connection, violations)."""
    count = len(rows.client_of)
    at = np.flatnonzero((rows.direction == 0) & rows.is_packet)
    follows = np.flatnonzero(np.diff(rows.connection[at], prepend=-1) == 0)
    row, before = at[follows], at[follows - 1]
    # What the capture missed was not silence.
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
