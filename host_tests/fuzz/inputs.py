"""Inputs for the fuzz target: packets a broker may send, then spoilt.

Random bytes alone die at the first packet type; these get further in.
"""

import random

from host_tests.standin import packets

from .target import LEVELS

_TOPICS = (b"t", b"a/b", b"b", b"", b"a/" + b"x" * 60)
_FIRST_ACKS = (0x40, 0x50, 0x62, 0x6A, 0x70, 0xB0)
_REASONS = (0, 0, 0x10, 0x11, 0x80, 0x87, 0x92, 0x97)
# What packets of level 5 may say; where it is not theirs, they must not.
_OF_PUBLISH: tuple[dict, ...] = (
    {"message_expiry": 60},
    {"content_type": b"text", "user_property": [(b"k", b"v"), (b"k", b"w")]},
    {"subscription_id": [7, 300]},
    {"payload_format": 1, "correlation_data": bytes(40), "response_topic": b"a"},
)
_OF_ANSWER: tuple[dict, ...] = ({"reason_string": b"no"}, {"user_property": [(b"k", b"")]})
_OF_CONNACK: tuple[dict, ...] = (
    {"receive_maximum": 1, "maximum_packet_size": 20, "topic_alias_maximum": 3},
    {"maximum_qos": 1, "retain_available": 0, "server_keep_alive": 5},
    {"assigned_client_id": b"other", "session_expiry": 0, "server_reference": b"elsewhere"},
)
_WRONG: tuple[dict, ...] = (
    {"receive_maximum": 0},
    {"topic_alias": 1},
    {"response_topic": b"a/+"},
    {"reason_string": b"\xff"},
    {"maximum_qos": 2},
)


def generate(dice: random.Random) -> bytes:
    """One input: situation, level and size of the pieces, packets; the same dice give the
    same."""
    bits = dice.choice((0, 0, 1, 2, 3))
    level = LEVELS[bits]
    data = bytearray()
    situation = dice.randrange(256)
    if dice.random() < 0.7:
        situation &= ~1  # most of the client lies behind CONNACK
    elif level == 5:
        data += packets.connack(dice.choice((0, 0, 0, 0x87)), 0, _section(dice, _OF_CONNACK))
    for _ in range(dice.choice((1, 1, 2, 2, 3, 4, 6, 12))):
        data += _packet(dice, level)
    if dice.random() < 0.6:
        _spoil(dice, data)
    return bytes((situation, bits << 4 | dice.randrange(16))) + data


def _packet(dice: random.Random, level: int) -> bytes:
    kind = dice.random()
    if kind < 0.45:
        return _publish(dice, level)
    if kind < 0.85:
        body = packets.u16(_packet_id(dice))
        if level == 5 and dice.random() < 0.6:
            body += bytes((dice.choice(_REASONS),))
            if dice.random() < 0.6:
                body += _section(dice, _OF_ANSWER)
        return packets.packet(dice.choice(_FIRST_ACKS), body)
    if kind < 0.92:
        section = _section(dice, _OF_ANSWER) if level == 5 else b""
        return packets.suback(_packet_id(dice), dice.randrange(3), 1, properties=section)
    if level == 5 and dice.random() < 0.5:
        return dice.choice((packets.disconnect, packets.auth))(0x8B, _section(dice, _OF_ANSWER))
    none = packets.no_properties(level)
    answers = [packets.connack(code, 0, none) for code in (0, 5)]
    return dice.choice((packets.pingresp(), packets.pingreq(), *answers))


def _section(dice: random.Random, likely: tuple[dict, ...]) -> bytes:
    kind = dice.random()
    if kind < 0.5:
        return packets.NO_PROPERTIES
    if kind > 0.95:
        likely = dice.choice((_WRONG, _OF_PUBLISH, _OF_ANSWER, _OF_CONNACK))
    return packets.properties(**dice.choice(likely))


def _publish(dice: random.Random, level: int) -> bytes:
    first = 0x30 | dice.randrange(16)
    topic = dice.choice(_TOPICS)
    body = packets.string(topic)
    if first & 6:
        body += packets.u16(_packet_id(dice))
    if level == 5:
        body += _section(dice, _OF_PUBLISH)
    body += b"p" * dice.choice((0, 1, 5, 40, 57, 58, 59, 60, 61, 62, 63, 64, 65, 130, 300))
    return packets.packet(first, body)


def _packet_id(dice: random.Random) -> int:
    return dice.choice((1, 1, 2, 2, 3, 4, 5, 0, 65535))


def _spoil(dice: random.Random, data: bytearray) -> None:
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        at = dice.randrange(len(data)) if data else 0
        match dice.randrange(6):
            case 0 if data:
                data[at] = dice.randrange(256)
            case 1 if data:
                data[at] ^= 1 << dice.randrange(8)
            case 2 if data:
                del data[at : at + dice.choice((1, 1, 2, 10))]
            case 3:
                data[at:at] = dice.randbytes(dice.choice((1, 1, 2, 5)))
            case 4:
                data[at:at] = b"\xff" * dice.choice((1, 3, 4, 5))
            case _:
                del data[at:]
