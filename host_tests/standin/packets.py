"""MQTT packets of levels 3, 4 and 5, written and read apart from all that they test.

Nothing of the library's codec or the pipeline's decoder is used, so that a mistake
there cannot cancel itself out here.  A packet is bytes, fixed header included.  What
makes it one of level 5 is the argument `properties`, a whole section: b"" leaves it
out, as levels 3 and 4 do, NO_PROPERTIES is an empty one, `properties(…)` makes others.
Runs under CPython and MicroPython.  MQTT 3.1 §2, §3; 3.1.1 §2, §3; 5 §2, §3.
"""

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP = 1, 2, 3, 4, 5, 6, 7
SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP = 8, 9, 10, 11, 12, 13
DISCONNECT, AUTH = 14, 15

NAMES = (
    "?", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP",
    "SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH",
)  # fmt: skip

NO_PROPERTIES = b"\x00"
CLEAN, WILL, PASSWORD, USER = 0x02, 0x04, 0x40, 0x80  # flags of CONNECT

_PROTOCOLS = {3: b"\x00\x06MQIsdp\x03", 4: b"\x00\x04MQTT\x04", 5: b"\x00\x04MQTT\x05"}
_ANSWERS = (PUBACK, PUBREC, PUBREL, PUBCOMP)

# MQTT 5 §2.2.2.2.  Kinds: the bytes of a number, VARYING ones, TEXT with its length in
# front, a PAIR of texts.
_VARYING, _TEXT, _PAIR = 0, -1, -2
_PROPERTIES = {
    "payload_format": (1, 1), "message_expiry": (2, 4), "content_type": (3, _TEXT),
    "response_topic": (8, _TEXT), "correlation_data": (9, _TEXT),
    "subscription_id": (11, _VARYING), "session_expiry": (17, 4),
    "assigned_client_id": (18, _TEXT), "server_keep_alive": (19, 2),
    "authentication_method": (21, _TEXT), "authentication_data": (22, _TEXT),
    "request_problem": (23, 1), "will_delay": (24, 4), "request_response": (25, 1),
    "response_information": (26, _TEXT), "server_reference": (28, _TEXT),
    "reason_string": (31, _TEXT), "receive_maximum": (33, 2), "topic_alias_maximum": (34, 2),
    "topic_alias": (35, 2), "maximum_qos": (36, 1), "retain_available": (37, 1),
    "user_property": (38, _PAIR), "maximum_packet_size": (39, 4), "wildcard_available": (40, 1),
    "subscription_ids_available": (41, 1), "shared_available": (42, 1),
}  # fmt: skip
_BY_NUMBER = {number: (name, kind) for name, (number, kind) in _PROPERTIES.items()}
_MAY_REPEAT = ("subscription_id", "user_property")

# --- writing: parts ---------------------------------------------------------------------


def u16(number: int) -> bytes:
    return number.to_bytes(2, "big")


def string(data: bytes) -> bytes:
    return len(data).to_bytes(2, "big") + data


def varying(number: int) -> bytes:
    """A number of one to four bytes, as the remaining length is."""
    if number < 128:
        return bytes((number,))
    if number < 16384:
        return bytes((number & 127 | 128, number >> 7))
    return bytes((number & 127 | 128,)) + varying(number >> 7)


def packet(first: int, body: bytes = b"") -> bytes:
    """A packet from its first byte and what follows the length."""
    return bytes((first,)) + varying(len(body)) + body


def no_properties(level: int) -> bytes:
    """An empty section at level 5, nothing at levels 3 and 4."""
    return NO_PROPERTIES if level == 5 else b""


def properties(**values) -> bytes:
    """The properties of a packet, in the order of their identifiers; a list repeats one, a pair's
    value is two texts."""
    content = b""
    for name in sorted(values, key=lambda name: _PROPERTIES[name]):
        number, kind = _PROPERTIES[name]
        value = values[name]
        for one in value if isinstance(value, list) else [value]:
            content += bytes((number,))
            if kind > 0:
                content += one.to_bytes(kind, "big")
            elif kind == _VARYING:
                content += varying(one)
            else:
                content += b"".join(string(text) for text in (one if kind == _PAIR else (one,)))
    return varying(len(content)) + content


# --- writing: packets -------------------------------------------------------------------


def connect(
    client_id: bytes = b"dev",
    flags: int = 0x02,
    keepalive: int = 60,
    *fields: bytes,
    level: int = 3,
    properties: bytes = b"",
    will_properties: bytes = b"",
) -> bytes:
    """CONNECT; `fields`: will topic and message, user, password, those that `flags` name."""
    body = _PROTOCOLS[level] + bytes((flags,)) + u16(keepalive)
    if level == 5:
        body += properties or NO_PROPERTIES
    body += string(client_id)
    if level == 5 and flags & WILL:
        body += will_properties or NO_PROPERTIES
    for field in fields:
        body += string(field)
    return packet(0x10, body)


def connack(code: int = 0, flags: int = 0, properties: bytes = b"") -> bytes:
    """CONNACK; flag 1: the session was there."""
    return packet(0x20, bytes((flags, code)) + properties)


def publish(
    topic: bytes,
    payload: bytes,
    qos: int = 0,
    packet_id: int = 0,
    dup: int = 0,
    retain: int = 0,
    properties: bytes = b"",
) -> bytes:
    """PUBLISH; at QoS 0 the packet id is left out."""
    middle = topic + packet_id.to_bytes(2, "big") + properties if qos else topic + properties
    size = 2 + len(middle) + len(payload)
    first = 0x30 | dup << 3 | qos << 1 | retain
    head = bytes((first, size)) if size < 128 else bytes((first,)) + varying(size)
    return head + len(topic).to_bytes(2, "big") + middle + payload


def answer(
    kind: int, packet_id: int, dup: int = 0, reason: int | None = None, properties: bytes = b""
) -> bytes:
    """PUBACK, PUBREC, PUBREL or PUBCOMP; the short form without a reason is level 5's, too."""
    first = kind << 4 | (2 if kind == PUBREL else 0) | dup << 3
    if reason is None:
        return bytes((first, 2)) + packet_id.to_bytes(2, "big")
    return packet(first, u16(packet_id) + bytes((reason,)) + properties)


def _writer(kind: int):
    def write(packet_id: int, reason: int | None = None, properties: bytes = b"") -> bytes:
        return answer(kind, packet_id, 0, reason, properties)

    return write


puback, pubrec, pubcomp = _writer(PUBACK), _writer(PUBREC), _writer(PUBCOMP)


def pubrel(
    packet_id: int, dup: int = 0, reason: int | None = None, properties: bytes = b""
) -> bytes:
    """PUBREL; DUP is level 3's."""
    return answer(PUBREL, packet_id, dup, reason, properties)


def subscribe(
    packet_id: int, *pairs: tuple[bytes, int], dup: int = 0, properties: bytes = b""
) -> bytes:
    """SUBSCRIBE to pairs of filter and QoS; at level 5 the QoS's byte has more options."""
    body = u16(packet_id) + properties
    for name, options in pairs:
        body += string(name) + bytes((options,))
    return packet(0x82 | dup << 3, body)


def suback(packet_id: int, *codes: int, properties: bytes = b"") -> bytes:
    """SUBACK with the granted QoS or the error of each filter."""
    return packet(0x90, u16(packet_id) + properties + bytes(codes))


def unsubscribe(packet_id: int, *names: bytes, dup: int = 0, properties: bytes = b"") -> bytes:
    body = u16(packet_id) + properties
    for name in names:
        body += string(name)
    return packet(0xA2 | dup << 3, body)


def unsuback(packet_id: int, *codes: int, properties: bytes = b"") -> bytes:
    """UNSUBACK; level 5 has a code for each filter."""
    return packet(0xB0, u16(packet_id) + properties + bytes(codes))


def pingreq() -> bytes:
    return b"\xc0\x00"


def pingresp() -> bytes:
    return b"\xd0\x00"


def disconnect(reason: int | None = None, properties: bytes = b"") -> bytes:
    """DISCONNECT; the short form without a reason is level 5's, too."""
    return packet(0xE0, b"" if reason is None else bytes((reason,)) + properties)


def auth(reason: int | None = None, properties: bytes = b"") -> bytes:
    return packet(0xF0, b"" if reason is None else bytes((reason,)) + properties)


# --- reading: where packets begin and end -----------------------------------------------


def size_of(data: bytes | bytearray, at: int = 0) -> int:
    """The whole size of the packet that begins at `at`; 0 while its length is not all there.

    Raises ValueError for a length of more than four bytes.
    """
    size = shift = 0
    for end in range(at + 1, min(at + 5, len(data))):
        size |= (data[end] & 127) << shift
        if data[end] < 128:
            return end + 1 - at + size
        shift += 7
    if len(data) > at + 4:
        raise ValueError("a length of more than four bytes")
    return 0


def take(buffer: bytearray) -> bytes | None:
    """The next whole packet, removed from `buffer`; None when there is none yet."""
    have = len(buffer)
    if have < 2:
        return None
    size = buffer[1] + 2
    if size > 129:
        size = size_of(buffer)
    if not size or size > have:
        return None
    whole = bytes(buffer[:size])
    buffer[:size] = b""
    return whole


def split(data: bytes) -> list[bytes]:
    """All packets in `data`; the last one may be cut short."""
    found = []
    at = 0
    while at < len(data):
        end = at + (size_of(data, at) or len(data))
        found.append(data[at:end])
        at = end
    return found


def body_start(packet: bytes) -> int:
    """Where the fixed header ends."""
    at = 1
    while packet[at] > 127:
        at += 1
    return at + 1


# --- reading: fields --------------------------------------------------------------------


def string_at(data: bytes, at: int) -> tuple[bytes, int]:
    """(data, where it ends) of data with its length in front."""
    end = at + 2 + (data[at] << 8 | data[at + 1])
    if end > len(data):
        raise ValueError("a string is longer than its packet")
    return data[at + 2 : end], end


def _varying_at(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    for end in range(at, at + 4):
        number |= (data[end] & 127) << shift
        if data[end] < 128:
            return number, end + 1
        shift += 7
    raise ValueError("a number of more than four bytes")


def read_properties(data: bytes, at: int = 0) -> tuple[dict, int]:
    """({name: value}, where the section ends); what may repeat is a list.

    Raises ValueError for an unknown property and for one that must not be there twice.
    """
    size, at = _varying_at(data, at)
    end = at + size
    found: dict = {}
    while at < end:
        if data[at] not in _BY_NUMBER:
            raise ValueError("property %d is unknown" % data[at])
        name, kind = _BY_NUMBER[data[at]]
        at += 1
        value: object
        if kind > 0:
            value = int.from_bytes(data[at : at + kind], "big")
            at += kind
        elif kind == _VARYING:
            value, at = _varying_at(data, at)
        else:
            value, at = string_at(data, at)
            if kind == _PAIR:
                second, at = string_at(data, at)
                value = (value, second)
        if name in _MAY_REPEAT:
            found.setdefault(name, []).append(value)
        elif name in found:
            raise ValueError("%s is there twice" % name)
        else:
            found[name] = value
    if at != end or end > len(data):
        raise ValueError("the properties are longer than their section")
    return found, end


def properties_of(packet: bytes) -> dict:
    """{name: value} of the properties of a packet of level 5."""
    kind = packet[0] >> 4
    start = at = body_start(packet)
    if kind == CONNECT:
        at = string_at(packet, at)[1] + 4
    elif kind == PUBLISH:
        at = string_at(packet, at)[1] + (2 if packet[0] & 6 else 0)
    elif kind in _ANSWERS:
        at += 3
    elif kind in (DISCONNECT, AUTH):
        at += 1
    else:
        at += 2
    if at >= len(packet) and kind in _ANSWERS + (DISCONNECT, AUTH):
        return {}  # the short forms
    assert at > start
    return read_properties(packet, at)[0]


def publish_fields(packet: bytes, level: int = 4) -> tuple[int, int, bytes, bytes]:
    """(QoS, packet id, topic, payload) of a PUBLISH."""
    at = 2 if packet[1] < 128 else body_start(packet)
    end = at + 2 + (packet[at] << 8 | packet[at + 1])
    qos = packet[0] >> 1 & 3
    topic = packet[at + 2 : end]
    packet_id = 0
    if qos:
        packet_id = packet[end] << 8 | packet[end + 1]
        end += 2
    if level == 5:
        size, end = _varying_at(packet, end)
        end += size
    return qos, packet_id, topic, packet[end:]


def read_id(packet: bytes) -> int:
    """The packet id of anything but PUBLISH."""
    at = 2 if packet[1] < 128 else body_start(packet)
    return packet[at] << 8 | packet[at + 1]


def reason_of(packet: bytes) -> int:
    """The reason of CONNACK, PUBACK to PUBCOMP, DISCONNECT, AUTH; 0 where there is none."""
    at = body_start(packet)
    kind = packet[0] >> 4
    at += 2 if kind in _ANSWERS else 1 if kind == CONNACK else 0
    return packet[at] if at < len(packet) else 0


class Connect:
    """The fields of a CONNECT; of will, user and password what is not there is None."""

    def __init__(self, packet: bytes):
        _, at = string_at(packet, body_start(packet))
        self.level = packet[at] & 127  # the highest bit says that a bridge asks
        self.flags = packet[at + 1]
        self.is_clean = bool(self.flags & CLEAN)
        self.keepalive = packet[at + 2] << 8 | packet[at + 3]
        at += 4
        self.properties: dict = {}
        if self.level == 5:
            self.properties, at = read_properties(packet, at)
        self.client_id, at = string_at(packet, at)
        self.will_properties: dict = {}
        self.will_topic = self.will_message = self.user = self.password = None
        if self.flags & WILL:
            if self.level == 5:
                self.will_properties, at = read_properties(packet, at)
            self.will_topic, at = string_at(packet, at)
            self.will_message, at = string_at(packet, at)
        if self.flags & USER:
            self.user, at = string_at(packet, at)
        if self.flags & PASSWORD:
            self.password, at = string_at(packet, at)
        if at != len(packet):
            raise ValueError("more in CONNECT than its flags say")


def filters(packet: bytes, level: int = 4) -> list[tuple[bytes, int]]:
    """(filter, options) of a SUBSCRIBE; an UNSUBSCRIBE has no options, here 0."""
    found = []
    has_options = packet[0] >> 4 == SUBSCRIBE
    at = body_start(packet) + 2
    if level == 5:
        _, at = read_properties(packet, at)
    while at < len(packet):
        name, at = string_at(packet, at)
        found.append((name, packet[at] if has_options else 0))
        at += has_options
    return found


def names(packet: bytes, level: int = 4) -> list[bytes]:
    """The filters of an UNSUBSCRIBE."""
    return [name for name, _ in filters(packet, level)]


def describe(packet: bytes, level: int = 4) -> str:
    """One packet in a few words, for traces."""
    kind = packet[0] >> 4
    text = NAMES[kind]
    if kind == PUBLISH:
        qos, packet_id, topic, payload = publish_fields(packet, level)
        text += " qos %d" % qos + (" id %d" % packet_id if qos else "")
        text += " %s %r" % (topic.decode(), payload[:24])
    elif PUBACK <= kind <= UNSUBACK:
        text += " id %d" % read_id(packet)
    elif kind == CONNECT:
        hello = Connect(packet)
        text += " level %d" % hello.level if hello.level > 3 else ""
        text += " clean" if hello.is_clean else " keep session"
    elif kind == CONNACK:
        at = body_start(packet)
        text += " %d" % packet[at + 1] + (" session present" if packet[at] else "")
    if kind in _ANSWERS + (DISCONNECT,) and reason_of(packet):
        text += " reason 0x%02x" % reason_of(packet)
    return text + (" DUP" if packet[0] & 8 and kind in (PUBLISH, PUBREL, 8, 10) else "")
