"""MQTT 3.1 and 3.1.1 packets for the simulated broker, by a few lines of its own.

Nothing of `umqtt31.packet` is used, so that a mistake there cannot cancel itself out
here.  A packet is bytes, fixed header included.
"""

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = range(1, 8)
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT = range(8, 15)

NAMES = (
    "?", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP",
    "SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "?",
)  # fmt: skip

_HEADS = {PUBACK: b"\x40\x02", PUBREC: b"\x50\x02", PUBREL: b"\x62\x02", PUBCOMP: b"\x70\x02"}
_HEADS[UNSUBACK] = b"\xb0\x02"


def take(buffer: bytearray) -> bytes | None:
    """The next whole packet, removed from `buffer`; None when there is none yet."""
    size = len(buffer)
    if size < 2:
        return None
    end = buffer[1]
    at = 2
    if end > 127:
        end &= 127
        shift = 7
        while True:
            if at >= size:
                return None
            end |= (buffer[at] & 127) << shift
            shift += 7
            at += 1
            if buffer[at - 1] < 128:
                break
    end += at
    if end > size:
        return None
    packet = bytes(buffer[:end])
    del buffer[:end]
    return packet


def body_start(packet: bytes) -> int:
    """Where the fixed header ends."""
    at = 1
    while packet[at] > 127:
        at += 1
    return at + 1


def answer(kind: int, packet_id: int, dup: bool = False) -> bytes:
    """PUBACK, PUBREC, PUBREL, PUBCOMP or UNSUBACK."""
    head = _HEADS[kind]
    if dup:
        head = bytes((head[0] | 8, 2))
    return head + packet_id.to_bytes(2)


def publish(topic: bytes, payload: bytes, qos: int, packet_id: int, dup: bool = False) -> bytes:
    """PUBLISH, not retained."""
    body = len(topic).to_bytes(2) + topic
    if qos:
        body += packet_id.to_bytes(2)
    body += payload
    return bytes((0x30 | qos << 1 | dup << 3,)) + _length(len(body)) + body


def suback(packet_id: int, granted: list[int]) -> bytes:
    """SUBACK with the granted QoS of each filter."""
    return bytes((0x90, 2 + len(granted))) + packet_id.to_bytes(2) + bytes(granted)


def publish_fields(packet: bytes) -> tuple[int, int, bytes, bytes]:
    """(QoS, packet id, topic, payload) of a PUBLISH."""
    at = 2 if packet[1] < 128 else body_start(packet)
    end = at + 2 + int.from_bytes(packet[at : at + 2])
    qos = packet[0] >> 1 & 3
    if qos:
        return qos, int.from_bytes(packet[end : end + 2]), packet[at + 2 : end], packet[end + 2 :]
    return 0, 0, packet[at + 2 : end], packet[end:]


def read_id(packet: bytes) -> int:
    """The packet id of anything but PUBLISH."""
    at = body_start(packet)
    return int.from_bytes(packet[at : at + 2])


def connect_fields(packet: bytes) -> tuple[int, bool]:
    """(level, clean session) of a CONNECT."""
    at = body_start(packet)
    at += 2 + int.from_bytes(packet[at : at + 2])
    return packet[at], bool(packet[at + 1] & 2)


def filters(packet: bytes) -> list[tuple[bytes, int]]:
    """(filter, QoS) of a SUBSCRIBE."""
    at = body_start(packet) + 2
    found = []
    while at < len(packet):
        end = at + 2 + int.from_bytes(packet[at : at + 2])
        found.append((packet[at + 2 : end], packet[end]))
        at = end + 1
    return found


def describe(packet: bytes) -> str:
    """One packet in a few words, for traces."""
    kind = packet[0] >> 4
    text = NAMES[kind]
    if kind == PUBLISH:
        qos, packet_id, topic, payload = publish_fields(packet)
        text += f" qos {qos}" + (f" id {packet_id}" if qos else "")
        text += f" {topic.decode()} {payload[:24]!r}"
    elif kind in (PUBACK, PUBREC, PUBREL, PUBCOMP, SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK):
        text += f" id {read_id(packet)}"
    elif kind == CONNECT:
        level, is_clean = connect_fields(packet)
        text += f" level {level}" if level > 3 else ""
        text += " clean" if is_clean else " keep session"
    elif kind == CONNACK:
        text += f" {packet[3]}" + (" session present" if packet[2] else "")
    return text + (" DUP" if packet[0] & 8 and kind != CONNECT else "")


def _length(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)
