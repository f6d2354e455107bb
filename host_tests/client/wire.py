"""MQTT 3.1 and 3.1.1 packets for the tests' broker, written apart from the library's codec.

A mistake in the codec can so never cancel itself out.  Runs under CPython and
under MicroPython.  MQTT 3.1 §2 and §3; MQTT 3.1.1 §3.
"""

PINGREQ = b"\xc0\x00"
PINGRESP = b"\xd0\x00"
DISCONNECT = b"\xe0\x00"


def u16(number):
    return bytes((number // 256, number % 256))


def string(data):
    return u16(len(data)) + data


def packet(first, body=b""):
    length = len(body)
    head = bytes((first,))
    while True:
        group = length % 128
        length //= 128
        if not length:
            return head + bytes((group,)) + body
        head += bytes((group + 128,))


def connect(client_id=b"dev", flags=0x02, keepalive=60, *fields, level=3):
    name = b"\x00\x06MQIsdp\x03" if level == 3 else b"\x00\x04MQTT\x04"
    body = name + bytes((flags,)) + u16(keepalive) + string(client_id)
    for field in fields:
        body += string(field)
    return packet(0x10, body)


def connack(code=0, flags=0):
    return bytes((0x20, 2, flags, code))


def publish(topic, payload, qos=0, packet_id=0, dup=0, retain=0):
    body = string(topic) + (u16(packet_id) if qos else b"") + payload
    return packet(0x30 + 8 * dup + 2 * qos + retain, body)


def read_publish(packet):
    """A PUBLISH with a short header and topic -> (payload, QoS, packet id, dup)."""
    assert packet[0] >> 4 == 3 and packet[1] < 128, packet
    qos = packet[0] >> 1 & 3
    end = 4 + packet[3]
    packet_id = packet[end] * 256 + packet[end + 1] if qos else 0
    return packet[end + (2 if qos else 0) :], qos, packet_id, packet[0] >> 3 & 1


def read_id(packet):
    """The packet id of an acknowledgement."""
    return packet[2] * 256 + packet[3]


def puback(packet_id):
    return packet(0x40, u16(packet_id))


def pubrec(packet_id):
    return packet(0x50, u16(packet_id))


def pubrel(packet_id, dup=0):
    return packet(0x62 + 8 * dup, u16(packet_id))


def pubcomp(packet_id):
    return packet(0x70, u16(packet_id))


def subscribe(packet_id, *pairs, dup=0):
    body = u16(packet_id)
    for name, qos in pairs:
        body += string(name) + bytes((qos,))
    return packet(0x82 + 8 * dup, body)


def suback(packet_id, *granted):
    return packet(0x90, u16(packet_id) + bytes(granted))


def unsubscribe(packet_id, *names, dup=0):
    body = u16(packet_id)
    for name in names:
        body += string(name)
    return packet(0xA2 + 8 * dup, body)


def unsuback(packet_id):
    return packet(0xB0, u16(packet_id))
