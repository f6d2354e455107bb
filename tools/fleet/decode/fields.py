"""`Packets` -> the columns of `schemas.EVENTS`, all packets of a batch at once.

Text is copied by Arrow, never byte by byte in Python; only packets of which there
are few (CONNECT, SUBSCRIBE …) are read one by one.
"""

import bisect

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import schemas
from ..capture import payloads
from ..capture.frames import varints, words
from . import connect

_PUBLISH, _CONNECT, _CONNACK, _DISCONNECT, _AUTH = 3, 1, 2, 14, 15
_WITH_ID = np.array([t in (4, 5, 6, 7, 8, 9, 10, 11) for t in range(16)])
_WITH_DUP = np.array([t in (3, 6, 8, 10) for t in range(16)])
_WITH_REASON = np.array([t in (4, 5, 6, 7) for t in range(16)])
_DETAILED = np.array([t in (1, 2, 8, 9, 10) for t in range(16)])
_IS_OF_PUBLISH = np.isin(np.arange(256), list(connect.OF_PUBLISH))
_DETAILED_AT_5 = np.array([t in (11, 14) for t in range(16)])


def introduce(packets, connections):
    """Let the CONNECT and CONNACK packets tell who the connections belong to.

    -> {place of a CONNECT: (its `detail`, error)}, for `decode`.
    """
    kind = packets.data[packets.at] >> 4
    hellos = {}
    for at, body in _bodies(packets, np.flatnonzero(kind == _CONNECT)):
        said, error = connect.read(_CONNECT, body, 0)
        hellos[at] = connect.to_json(said), error
        connection = connections[int(packets.stream[at]) >> 1]
        if connection.client_id is None:
            connection.client_id, connection.level = said.get("client_id"), said.get("level", 0)
    # Only at level 5 a CONNACK can give a client its id.
    for at, body in _bodies(packets, np.flatnonzero(kind == _CONNACK)):
        connection = connections[int(packets.stream[at]) >> 1]
        if connection.level == 5:
            fields, _ = connect.read(_CONNACK, body, 5)
            connection.client_id = fields.get("client_id", connection.client_id)
    return hellos


def _bodies(packets, index):
    # (place, bytes behind the header) of some packets.
    view = packets.data.data
    ends = packets.body[index].tolist(), packets.end[index].tolist()
    for at, begin, end in zip(index.tolist(), *ends, strict=True):
        yield at, bytes(view[begin:end])


def decode(packets, levels, aliases, hellos, counters=payloads.COUNTERS):
    """-> {column: array} of everything that the packets' own bytes tell.

    `levels` is the protocol level of each packet's connection, 0 when unknown;
    `aliases` (`Aliases`) are kept by the caller from call to call;
    `hellos` is what `introduce` gave; `counters` are names of JSON fields.
    """
    data, body, end = packets.data, packets.body, packets.end
    first = data[packets.at]
    kind = first >> 4
    is_publish = kind == _PUBLISH
    qos = np.where(is_publish, (first >> 1) & 3, 0).astype(np.int8)
    u16 = words(data, ">u2")
    room = end - body
    errors = {}

    topic_size = np.where(is_publish & (room >= 2), u16[body], 0).astype(np.int64)
    id_at = np.where(is_publish, body + 2 + topic_size, body)
    has_id = np.where(is_publish, qos > 0, _WITH_ID[kind])
    behind = id_at + 2 * has_id
    is_short = (has_id | is_publish) & ((behind > end) | (is_publish & (room < 2)))
    if is_short.any():
        errors.update(dict.fromkeys(np.flatnonzero(is_short).tolist(), "packet too short"))
        has_id &= ~is_short
        topic_size[is_short] = 0
        behind = np.where(is_short, end, behind)
        id_at = np.where(is_short, body, id_at)
    packet_id = u16[id_at].astype(np.int32)
    payload = np.where(is_publish, behind, end)
    five = np.flatnonzero(is_publish & (levels == 5) & ~is_short)
    payload[five] = _behind_properties(data, behind[five], end[five], five, errors)
    unknown, at_five = is_publish & (levels == 0) & ~is_short, None
    if unknown.any():
        payload[unknown], at_five = _either(data, behind[unknown], end[unknown], unknown.copy())
    payload_size = end - payload
    hashes = payloads.payload_hash(data, payload, payload_size)
    texts = {}
    topics = _topics(data, body, topic_size, is_publish & ~is_short, errors)
    topics = _with_properties(packets, five, behind, payload, topics, aliases, texts)

    columns = {
        "packet_type": kind,
        "flags": (first & 15).astype(np.int8),
        "qos": qos,
        "dup": (first & 8 != 0) & _WITH_DUP[kind],
        "retain": (first & 1 != 0) & is_publish,
        "packet_id": pa.array(packet_id, mask=~has_id),
        "topic": topics,
        "payload_bytes": payload_size,
        "packet_bytes": end - packets.at,
        "payload_hash": np.where(is_publish, hashes, 0),
        "reason_code": _reasons(data, kind, body, end),
        "envelope": _envelopes(data, payload, payload_size, is_publish, topics, counters),
        "detail": _details(packets, kind, levels, errors, texts, hellos),
        "at_5": at_five,
    }
    columns["error"] = _sparse(errors, len(kind))
    return columns


def _behind_properties(data, at, end, index, errors):
    # Level 5: a length and that many bytes of properties before the payload.
    size, at = varints(data, at)
    behind = at + size
    bad = behind > end
    errors.update(dict.fromkeys(index[bad].tolist(), "properties longer than the packet"))
    return np.where(bad, end, behind)


def _either(data, at, end, held):
    # The level was not captured -> (where payloads begin below level 5, what they are at
    # level 5).  A reading tells by itself which of the two it is.
    broken: dict = {}
    behind = _behind_properties(data, at, end, np.arange(len(at)), broken)
    may_be = np.ones(len(at), bool)
    may_be[list(broken)] = False
    may_be &= at < end
    some = may_be & (behind - at > 1)
    # Nearly all text payloads return here.
    may_be &= ~some | (data[at] > 127) | _IS_OF_PUBLISH[data[at + 1]]
    for place in np.flatnonzero(may_be & some).tolist():
        may_be[place] = connect.are_of_publish(data[at[place] : behind[place]].tobytes())
    is_five = payloads.is_reading(data, behind, end - behind) & may_be
    may_be &= is_five | ~payloads.is_reading(data, at, end - at)
    values = np.zeros(len(at), schemas.AT_5)
    values["properties_bytes"] = behind - at
    values["payload_hash"] = payloads.payload_hash(data, behind, end - behind)
    held[held] = may_be
    offsets = np.concatenate(([0], np.cumsum(held) * values.itemsize)).astype(np.int32)
    buffers = [pa.array(held).buffers()[1], pa.py_buffer(offsets), pa.py_buffer(values[may_be])]
    column = pa.Array.from_buffers(pa.binary(), len(held), buffers)
    return np.where(is_five, behind, at), column


def _with_properties(packets, five, behind, payload, topics, aliases, texts):
    # Topics with those that an alias stands for; expiry and alias go into `texts`.
    with_some = five[payload[five] - behind[five] > 1]
    replaced = {}
    for at in with_some.tolist():
        found = connect.read_publish(packets.data[behind[at] : payload[at]].tobytes())
        if not found:
            continue
        texts[at] = connect.to_json(found)
        if "topic_alias" in found:
            alias = int(packets.stream[at]), found["topic_alias"], int(packets.ordinal[at])
            topic = topics[at].as_py()
            if topic:
                aliases.define(*alias, topic)
            elif known := aliases.topic(*alias):
                replaced[at] = known
    if not replaced:
        return topics
    column = topics.to_pylist()
    for at, topic in replaced.items():
        column[at] = topic
    return pa.array(column, pa.string()).dictionary_encode()


def slices(data, start, size):
    """A binary Arrow array of `data[start : start + size]`; the parts do not overlap.

    Parts and the bytes between them are one array for Arrow, which then copies
    every other element: no loop and no index for each byte.
    """
    if not len(start):
        return pa.array([], pa.large_binary())
    order = np.argsort(start, kind="stable")
    offsets = np.empty(2 * len(start), np.int64)
    offsets[0::2] = start[order]
    offsets[1::2] = (start + size)[order]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    whole = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    place = np.empty(len(start), np.int64)
    place[order] = np.arange(0, len(offsets), 2)
    return whole.take(pa.array(place))


def _topics(data, body, size, has_topic, errors):
    index = np.flatnonzero(has_topic)
    raw = slices(data, body[index] + 2, size[index])
    try:
        texts = raw.cast(pa.large_string())
    except pa.ArrowInvalid:
        texts = pa.array(_decoded(raw, index, errors), pa.large_string())
    return _spread(texts.cast(pa.string()).dictionary_encode(), has_topic)


def _decoded(raw, index, errors):
    for at, value in zip(index.tolist(), raw.to_pylist(), strict=True):
        try:
            yield value.decode()
        except UnicodeDecodeError:
            errors[at] = "topic is not UTF-8"
            yield connect.text(value)


def _spread(values, mask):
    # One value for each True of the mask, null elsewhere.
    if mask.all():
        return values
    place = np.cumsum(mask) - 1
    return values.take(pa.array(place, mask=~mask))


def _envelopes(data, payload, size, is_publish, topics, counters):
    is_reading = is_publish & payloads.is_reading(data, payload, size)
    index = np.flatnonzero(is_reading)
    raw = slices(data, payload[index], size[index]).cast(pa.binary())
    found = _spread(raw, is_reading)
    is_object = is_publish & ~is_reading & (size > 2)
    index = np.flatnonzero(is_object & (data[np.minimum(payload, len(data) - 1)] == ord("{")))
    if not len(index):
        return found
    view = memoryview(data)
    names = topics.take(pa.array(index)).to_pylist()
    places = zip(index.tolist(), payload[index].tolist(), size[index].tolist(), names, strict=True)
    values = {
        at: payloads.envelope(bytes(view[begin : begin + held]), name, counters)
        for at, begin, held, name in places
    }
    of_json = pa.array([values.get(at) for at in range(len(size))], pa.binary())
    return pc.coalesce(found, of_json)


def _reasons(data, kind, body, end):
    # It follows the packet id of acknowledgements (level 5), and the flags of CONNACK.
    at = body + np.where(kind == _CONNACK, 1, np.where(_WITH_REASON[kind], 2, 0))
    has_reason = _WITH_REASON[kind] | np.isin(kind, (_CONNACK, _DISCONNECT, _AUTH))
    has_reason &= at < end
    return pa.array(data[np.minimum(at, end)].astype(np.int16), mask=~has_reason)


def _details(packets, kind, levels, errors, texts, hellos):
    is_detailed = _DETAILED[kind] | (_DETAILED_AT_5[kind] & (levels == 5))
    index = np.flatnonzero(is_detailed)
    told = zip(_bodies(packets, index), kind[index].tolist(), levels[index].tolist(), strict=True)
    for (at, body), one, level in told:
        text, error = hellos.get(at) or connect.read_text(one, body, level)
        if text:
            texts[at] = text
        if error:
            errors[at] = error
    return _sparse(texts, len(kind))


def _sparse(values, count):
    if not values:
        return pa.nulls(count, pa.string())
    column = [None] * count
    for at, value in values.items():
        column[at] = value
    return pa.array(column, pa.string())


class Aliases:
    """Topics that aliases of level 5 stand for, by stream; places are ordinals of segments.

    An alias may be given another topic at any time, so behind missing bytes nobody knows what
    those from before them stand for.
    """

    def __init__(self):
        self._topics = {}
        self._missing = {}

    def miss(self, stream, ordinal):
        """Bytes of the stream are missing before this place."""
        bisect.insort(self._missing.setdefault(stream, []), ordinal)

    def define(self, stream, alias, ordinal, topic):
        """From here on the alias stands for the topic."""
        self._topics[stream, alias] = ordinal, topic

    def topic(self, stream, alias, ordinal):
        """What the alias stands for at this place; None where that is not known."""
        defined, topic = self._topics.get((stream, alias), (ordinal, None))
        missing = self._missing.get(stream, ())
        if bisect.bisect_right(missing, ordinal) > bisect.bisect_right(missing, defined):
            return None
        return topic
