"""Does an MQTT packet start here?  For finding the way back after missing bytes.

Stricter than a decoder has to be: flags, lengths, identifiers and topics must all
be as the standards want them, so that payload bytes are not taken for packets.
"""

import re

from .. import mqtt as packet

# How many bytes of the body of each type are needed to judge it.
_SHOWN = (0, 6, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0)

# First bytes that are right in each direction (0: from the client, 1: from the server);
# DUP on PUBREL, SUBSCRIBE and UNSUBSCRIBE is level 3's.
_PUBLISH = [*range(0x30, 0x36), *range(0x3A, 0x3E)]
_BOTH = [*_PUBLISH, packet.PUBACK, packet.PUBREC, packet.PUBREL, 0x6A, packet.PUBCOMP, packet.AUTH]
_ASKING = [packet.CONNECT, packet.SUBSCRIBE, 0x8A, packet.UNSUBSCRIBE, 0xAA, packet.PINGREQ]
_ANSWERS = [packet.CONNACK, packet.SUBACK, packet.UNSUBACK, packet.PINGRESP]
_FIRST = [bytes([*_BOTH, *own, packet.DISCONNECT]) for own in (_ASKING, _ANSWERS)]
_SEARCH = tuple(re.compile(b"[" + re.escape(firsts) + b"]") for firsts in _FIRST)

INCOMPLETE, SHORT = -1, -2


def header(data, pos, end):
    """-> (body, packet end) of the fixed header at `pos`.

    The end is `INCOMPLETE` when the header is not all there, and 0 when its
    remaining length has a fifth byte (31-2.1-LEN).
    """
    length = shift = 0
    for at in range(pos + 1, min(pos + 5, end)):
        byte = data[at]
        length |= (byte & 127) << shift
        if byte < 128:
            return at + 1, at + 1 + length
        shift += 7
    return pos, (INCOMPLETE if pos + 5 > end else 0)


def check(data, pos, end, direction):
    """The end of the packet at `pos`, or INCOMPLETE, SHORT or 0.

    0 means that no packet starts here.  INCOMPLETE is a packet that goes on behind
    `end` but shows what it is, SHORT one that does not even show that.  A PUBLISH
    shows it by its whole topic.
    """
    first = data[pos]
    if first not in _FIRST[direction]:
        return 0
    body, after = header(data, pos, end)
    if after <= 0:
        return SHORT if after else 0
    if after > end and body + _SHOWN[first >> 4] > end:
        return SHORT
    if not _is_body_right(data, first, body, after, end):
        return 0
    return after if after <= end else INCOMPLETE


def _is_body_right(data, first, body, after, end):
    kind, size = first & 0xF0, after - body
    if kind == packet.PUBLISH:
        return _is_publish(data, first, body, after, end)
    if kind == packet.CONNECT:
        name = bytes(data[body : body + 8])
        return name == b"\x00\x06MQIsdp" or name[:6] == b"\x00\x04MQTT"
    if kind in (packet.PINGREQ, packet.PINGRESP):
        return size == 0
    if kind in (packet.DISCONNECT, packet.AUTH):
        return size == 0 or _is_reason(data, body, after, end)
    if kind == packet.CONNACK:
        return size >= 2 and data[body] < 2 and _is_reason(data, body + 1, after, end)
    has_id = body + 2 <= end and (data[body] or data[body + 1])
    if kind in (packet.SUBSCRIBE & 0xF0, packet.UNSUBSCRIBE & 0xF0):
        return size >= 5 and has_id
    if kind == packet.SUBACK:
        return size >= 3 and has_id and all(c < 3 or c >= 128 for c in data[body + 2 : after])
    return has_id and (size == 2 or (size > 2 and _is_reason(data, body + 2, after, end)))


def _is_reason(data, pos, after, end):
    # A return code only, or a reason code and properties that fill the packet.
    return pos + 1 == after or (pos + 1 < end and data[pos + 1] == after - pos - 2)


def _is_publish(data, first, body, after, end):
    if body + 2 > end:
        return False
    size = data[body] << 8 | data[body + 1]
    has_id = 2 if first & 6 else 0
    behind = body + 2 + size
    if not size or behind + has_id > min(after, end):
        return False
    if has_id and not (data[behind] or data[behind + 1]):
        return False
    name = bytes(data[body + 2 : behind])
    return min(name) >= 32 and packet.is_topic(name)


def find(data, start, end, direction, is_thorough):
    """Where in one segment's bytes `data[start:end]` packets start again, or -1.

    The start of the segment is believed with one packet; a place inside it only
    when packets fill the segment from there to its end, a PUBLISH among them or
    two in all.
    """
    count, _, last = _chain(data, start, end, direction)
    if (count and last) or (last == INCOMPLETE and data[start] >> 4 == 3):
        return start
    if not is_thorough:
        return -1
    for match in _SEARCH[direction].finditer(data, start + 1, end - 1):
        count, has_publish, last = _chain(data, match.start(), end, direction)
        if last and (count > 1 or has_publish):
            return match.start()
    return -1


def _chain(data, pos, end, direction):
    # -> (whole packets, is there a PUBLISH, `end`, INCOMPLETE, SHORT, or 0 for nonsense).
    count, has_publish = 0, False
    while pos < end:
        after = check(data, pos, end, direction)
        if after <= 0:
            return count, has_publish, after
        has_publish |= data[pos] >> 4 == 3
        count += 1
        pos = after
    return count, has_publish, end
