"""MQTT packets of simulated connections -> TCP segments -> frames of a pcap file.

Writes its packets with its own few lines, so that a mistake in the decoder cannot
hide itself.  Checksums are left at zero, as network cards with offload show them.
"""

import struct

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
_RECORD = struct.Struct("<IIII").pack
_LENGTH = struct.Struct(">H").pack
_LONG = struct.Struct(">I").pack
_TCP = struct.Struct(">IIH").pack
_TCP_REST = b"\xff\xff\0\0\0\0"
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


def remaining(size):
    """The remaining length of a packet, one to four bytes."""
    out = b""
    while size > 127:
        out += bytes((size & 127 | 128,))
        size >>= 7
    return out + bytes((size,))


def string(data):
    """A string with its length in front."""
    return _LENGTH(len(data)) + data


def connect(client_id, level, clean, keep_alive_s, will_topic=b"", expiry_s=0):
    """A CONNECT, with the will message `offline` when a topic for it is given.

    `expiry_s` is level 5's: how long the session is kept.
    """
    name = b"MQIsdp" if level == 3 else b"MQTT"
    flags = (2 if clean else 0) | (0x2C if will_topic else 0)
    body = string(name) + bytes((level, flags)) + _LENGTH(keep_alive_s)
    if level == 5:
        body += b"\x05\x11" + _LONG(expiry_s) if expiry_s else b"\0"
    body += string(client_id)
    if will_topic:
        body += (b"\0" if level == 5 else b"") + string(will_topic) + string(b"offline")
    return b"\x10" + remaining(len(body)) + body


def connack(level, session_present):
    """A CONNACK that accepts; level 3 cannot tell of a session."""
    body = bytes((bool(session_present and level > 3), 0)) + (b"\0" if level == 5 else b"")
    return b"\x20" + bytes((len(body),)) + body


def publish(first, topic, packet_id, payload, level, expiry_s=None):
    """A PUBLISH with this first byte; packet id None leaves it out.

    `expiry_s` is level 5's: how long the message is worth anything.
    """
    middle = topic if packet_id is None else topic + _LENGTH(packet_id)
    if level == 5:
        middle += b"\0" if expiry_s is None else b"\x05\x02" + _LONG(expiry_s)
    size = 2 + len(middle) + len(payload)
    return bytes((first,)) + remaining(size) + _LENGTH(len(topic)) + middle + payload


def acknowledge(first, packet_id, reason=b""):
    """PUBACK, PUBREC, PUBREL, PUBCOMP or UNSUBACK by its first byte, level 5 with a reason."""
    return bytes((first, 2 + len(reason))) + _LENGTH(packet_id) + reason


def subscribe(packet_id, name, qos, level):
    """A SUBSCRIBE to one filter."""
    body = _LENGTH(packet_id) + (b"\0" if level == 5 else b"") + string(name) + bytes((qos,))
    return b"\x82" + remaining(len(body)) + body


def suback(packet_id, qos, level):
    """The SUBACK that grants it."""
    body = _LENGTH(packet_id) + (b"\0" if level == 5 else b"") + bytes((qos,))
    return b"\x90" + remaining(len(body)) + body


class Connection:
    """One TCP connection; direction 0 is to the server.  Sequence numbers may wrap."""

    def __init__(self, client, server, client_port, client_isn, server_isn, server_port=1883):
        self._heads = (
            _head(client, server, client_port, server_port),
            _head(server, client, server_port, client_port),
        )
        self._is_v6 = len(client) == 16
        self.seq = [client_isn, server_isn]

    def frame(self, ts, direction, payload=b"", flags=PSH | ACK, seq=None):
        """A pcap record of one segment; it moves the sequence number unless `seq` is given."""
        if seq is None:
            seq = self.seq[direction]
            self.seq[direction] = seq + len(payload) + (flags & (SYN | FIN) != 0) & 0xFFFFFFFF
        first, second = self._heads[direction]
        size = len(payload)
        length = _LENGTH(size + 20 if self._is_v6 else size + 40)
        total = size + (74 if self._is_v6 else 54)
        acked = self.seq[1 - direction] if flags & ACK else 0
        return b"".join(
            (
                _RECORD(ts // 1_000_000, ts % 1_000_000, total, total),
                first,
                length,
                second,
                _TCP(seq & 0xFFFFFFFF, acked, 0x5000 | flags),
                _TCP_REST,
                payload,
            )
        )


def _head(source, target, source_port, target_port):
    # The constant bytes before and behind the IP length field.
    ethernet = b"\x02\0\0\0\0\1\x02\0\0\0\0\2"
    ports = struct.pack(">HH", source_port, target_port)
    if len(source) == 16:
        return ethernet + b"\x86\xdd\x60\0\0\0", b"\x06\x40" + source + target + ports
    return ethernet + b"\x08\0\x45\0", b"\0\0\x40\0\x40\x06\0\0" + source + target + ports
