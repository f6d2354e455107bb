"""Inputs for the fuzz target: packets a broker may send, then spoilt.

Random bytes alone die at the first packet type; these get further in.
"""

import random

from tools.standin import packets

_TOPICS = (b"t", b"a/b", b"b", b"", b"a/" + b"x" * 60)
_FIRST_ACKS = (0x40, 0x50, 0x62, 0x6A, 0x70, 0xB0)
_OTHERS = (packets.pingresp(), packets.connack(), packets.connack(5), packets.pingreq())


def generate(dice: random.Random) -> bytes:
    """One input: situation, size of the pieces, packets; the same dice give the same."""
    data = bytearray()
    for _ in range(dice.choice((1, 1, 2, 2, 3, 4, 6, 12))):
        data += _packet(dice)
    if dice.random() < 0.6:
        _spoil(dice, data)
    situation = dice.randrange(256)
    if dice.random() < 0.7:
        situation &= ~1  # most of the client lies behind CONNACK
    return bytes((situation, dice.randrange(16))) + data


def _packet(dice: random.Random) -> bytes:
    kind = dice.random()
    if kind < 0.45:
        return _publish(dice)
    if kind < 0.85:
        return packets.packet(dice.choice(_FIRST_ACKS), packets.u16(_packet_id(dice)))
    if kind < 0.92:
        return packets.suback(_packet_id(dice), dice.randrange(3), 1)
    return dice.choice(_OTHERS)


def _publish(dice: random.Random) -> bytes:
    first = 0x30 | dice.randrange(16)
    topic = dice.choice(_TOPICS)
    body = packets.string(topic)
    if first & 6:
        body += packets.u16(_packet_id(dice))
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
