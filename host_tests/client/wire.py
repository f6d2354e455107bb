"""The packets of the level that a dialogue speaks.

`host_tests.standin.packets` writes them; what level 5 has more, empty properties and a code for
each filter of an UNSUBACK, comes in here unless a test gives it.  Runs under CPython and
MicroPython.
"""

from host_tests.standin import packets
from host_tests.standin.packets import (  # noqa: F401 - the same at every level
    PUBLISH,
    disconnect,
    packet,
    pingreq,
    pingresp,
    properties,
    puback,
    pubcomp,
    pubrec,
    pubrel,
    read_id,
    size_of,
    split,
    string,
    take,
)

level = 3


def speak(new_level):
    """From now on packets are of this level."""
    global level
    level = new_level


def _section(given):
    return given or (packets.NO_PROPERTIES if level == 5 else b"")


def asked(is_clean, size=256, most=36):
    """What a client of level 5 says in CONNECT if it is not told otherwise."""
    return properties(
        session_expiry=0 if is_clean else 0xFFFFFFFF,
        receive_maximum=most,
        maximum_packet_size=size,
    )


def connect(client_id=b"dev", flags=0x02, keepalive=60, *fields, level=3, **more):
    if level == 5:
        more.setdefault("properties", asked(flags & 2))
    return packets.connect(client_id, flags, keepalive, *fields, level=level, **more)


def connack(code=0, flags=0, properties=b""):
    return packets.connack(code, flags, _section(properties))


def publish(topic, payload, qos=0, packet_id=0, dup=0, retain=0, properties=b""):
    return packets.publish(topic, payload, qos, packet_id, dup, retain, _section(properties))


def read_publish(sent):
    """-> payload, QoS, packet id, DUP."""
    assert sent[0] >> 4 == packets.PUBLISH, sent
    qos, packet_id, _, payload = packets.publish_fields(sent, level)
    return payload, qos, packet_id, sent[0] >> 3 & 1


def subscribe(packet_id, *pairs, dup=0, properties=b""):
    return packets.subscribe(packet_id, *pairs, dup=dup, properties=_section(properties))


def suback(packet_id, *codes, properties=b""):
    return packets.suback(packet_id, *codes, properties=_section(properties))


def unsubscribe(packet_id, *names, dup=0):
    return packets.unsubscribe(packet_id, *names, dup=dup, properties=_section(b""))


def unsuback(packet_id, *codes, properties=b""):
    if level == 5:
        codes = codes or (0,)
    return packets.unsuback(packet_id, *codes, properties=_section(properties))


def refused(answer, packet_id, reason):
    """What the client answers to a message that was refused; `answer`: puback or pubrec."""
    return answer(packet_id, reason, properties(reason_string=b"refused"))
