"""Writes what went over a TCP connection as a pcap file that Wireshark decodes.

The bytes were seen by a proxy, not on a wire, so Ethernet, IPv4 and TCP headers are
made up: addresses of the documentation range, the broker on port 1883, handshake,
sequence and acknowledgement numbers, checksums.  Timestamps are the real ones, in
microseconds.  Format: https://www.tcpdump.org/manpages/pcap-savefile.5.html
"""

import struct
import threading
import time
from pathlib import Path

CLIENT = 0
BROKER = 1

_ADDRESSES = (bytes([192, 0, 2, 10]), bytes([192, 0, 2, 1]))
_MACS = (bytes([2, 0, 0, 0, 0, 10]), bytes([2, 0, 0, 0, 0, 1]))
_BROKER_PORT = 1883
_FIRST_CLIENT_PORT = 49152
_SEGMENT_BYTES = 1460
_FIN, _SYN, _RST, _PSH, _ACK = 1, 2, 4, 8, 16


class Capture:
    """A pcap file under construction; safe to use from several threads."""

    clock = staticmethod(time.time_ns)

    def __init__(self, path: Path):
        self.path = Path(path)
        self._file = self.path.open("wb")
        self._lock = threading.Lock()
        self._connections = 0
        self.packets = 0
        # Microsecond timestamps, version 2.4, snapshot 65535, link type 1 (Ethernet).
        self._file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))

    def connection(self) -> "Tap":
        """A new TCP connection, its handshake recorded."""
        with self._lock:
            port = _FIRST_CLIENT_PORT + self._connections % (65536 - _FIRST_CLIENT_PORT)
            self._connections += 1
        return Tap(self, port)

    def write(self, frame: bytes) -> None:
        """Append one Ethernet frame, stamped now."""
        with self._lock:
            if self._file.closed:
                return
            now_us = self.clock() // 1000
            seconds, micros = divmod(now_us, 1_000_000)
            self._file.write(struct.pack("<IIII", seconds, micros, len(frame), len(frame)))
            self._file.write(frame)
            self.packets += 1

    def close(self) -> None:
        """Finish the file; what connections write later is ignored."""
        with self._lock:
            self._file.close()


class Tap:
    """One recorded connection.  `sender` is CLIENT or BROKER."""

    def __init__(self, capture: Capture, client_port: int):
        self._capture = capture
        self._ports = (client_port, _BROKER_PORT)
        self._next = [0x10000000, 0x20000000]
        self._is_open = True
        self._lock = threading.Lock()
        self._send(CLIENT, _SYN)
        self._send(BROKER, _SYN | _ACK)
        self._send(CLIENT, _ACK)

    def data(self, sender: int, data: bytes) -> None:
        """Bytes went from `sender` to the other side."""
        for start in range(0, len(data), _SEGMENT_BYTES):
            self._send(sender, _PSH | _ACK, data[start : start + _SEGMENT_BYTES])

    def end(self, sender: int) -> None:
        """The connection was closed in good order, `sender` first."""
        if self._is_open:
            self._is_open = False
            self._send(sender, _FIN | _ACK)
            self._send(1 - sender, _FIN | _ACK)
            self._send(sender, _ACK)

    def cut(self) -> None:
        """The connection was torn: both sides see a reset."""
        if self._is_open:
            self._is_open = False
            self._send(BROKER, _RST | _ACK)
            self._send(CLIENT, _RST | _ACK)

    def _send(self, sender: int, flags: int, data: bytes = b"") -> None:
        with self._lock:  # nothing is acknowledged before it is recorded
            acknowledged = self._next[1 - sender] if flags & _ACK else 0
            segment = _segment(sender, self._ports, self._next[sender], acknowledged, flags, data)
            used = len(data) + bool(flags & (_SYN | _FIN))
            self._next[sender] = (self._next[sender] + used) & 0xFFFFFFFF
            self._capture.write(_frame(sender, segment))


def _segment(sender, ports, sequence, acknowledged, flags, data) -> bytes:
    head = struct.pack(
        ">HHIIBBHHH", ports[sender], ports[1 - sender], sequence, acknowledged, 5 << 4, flags,
        65535, 0, 0,
    )  # fmt: skip
    length = len(head) + len(data)
    pseudo = _ADDRESSES[sender] + _ADDRESSES[1 - sender] + struct.pack(">HH", 6, length)
    checksum = _checksum(pseudo + head + data)
    return head[:16] + struct.pack(">H", checksum) + head[18:] + data


def _frame(sender, segment) -> bytes:
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(segment), 0, 0x4000, 64, 6, 0)
    addresses = _ADDRESSES[sender] + _ADDRESSES[1 - sender]
    checksum = struct.pack(">H", _checksum(head + addresses))
    ethernet = _MACS[1 - sender] + _MACS[sender] + b"\x08\x00"
    return ethernet + head[:10] + checksum + addresses + segment


def _checksum(data: bytes) -> int:
    # RFC 1071: one's complement sum of 16-bit words.
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
