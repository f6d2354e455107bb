"""TCP segments of simulated connections -> frames of a pcap file.

Checksums are left at zero, as network cards with offload show them.
"""

import struct

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
_RECORD = struct.Struct("<IIII").pack
_LENGTH = struct.Struct(">H").pack
_TCP = struct.Struct(">IIH").pack
_TCP_REST = b"\xff\xff\0\0\0\0"
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


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
        record = _RECORD(*divmod(ts, 1_000_000), total, total)
        segment = _TCP(seq & 0xFFFFFFFF, acked, 0x5000 | flags) + _TCP_REST
        return record + first + length + second + segment + payload


def _head(source, target, source_port, target_port):
    # The constant bytes before and behind the IP length field.
    ethernet = b"\x02\0\0\0\0\1\x02\0\0\0\0\2"
    ports = struct.pack(">HH", source_port, target_port)
    if len(source) == 16:
        return ethernet + b"\x86\xdd\x60\0\0\0", b"\x06\x40" + source + target + ports
    return ethernet + b"\x08\0\x45\0", b"\0\0\x40\0\x40\x06\0\0" + source + target + ports
