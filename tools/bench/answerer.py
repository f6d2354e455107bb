"""The far end of a measurement: it acknowledges everything at once and keeps nothing.

Not a broker: no sessions, no matching.  A PUBLISH to `GIVE` with the payload
`count qos bytes` makes it send that many messages on `GIVEN`; one to `ECHO` comes
back at the QoS it had.  Answers of one read go out in one write.
"""

import contextlib
import socket
import struct
import threading

GIVE = b"bench/give"
GIVEN = b"bench/given"
ECHO = b"bench/echo"

_PUBACK, _PUBREC, _PUBREL, _PUBCOMP = 0x40, 0x50, 0x62, 0x70
_READ_BYTES = 65536


class Answerer:
    """Listens on a free loopback `port` from creation to `close()`; a context manager.

    `is_quick`: TCP acknowledges at once, so that a client which writes a packet in
    pieces does not sleep 40 ms in each (Nagle's algorithm and delayed acknowledgement).
    """

    def __init__(self, is_quick: bool = False) -> None:
        self._is_quick = is_quick
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> "Answerer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening; open connections end with their clients."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        rest = bytearray()
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(_READ_BYTES):
                if self._is_quick and hasattr(socket, "TCP_QUICKACK"):
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                rest += data
                out = bytearray()
                while packet := _take(rest):
                    out += _answer(*packet)
                if out:
                    connection.sendall(out)


def _take(rest: bytearray) -> tuple[int, bytes] | None:
    # The first whole packet leaves `rest` -> its first byte and its body.
    length = shift = 0
    for at in range(1, min(len(rest), 5)):
        length |= (rest[at] & 127) << shift
        shift += 7
        if rest[at] < 128:
            if len(rest) <= at + length:
                return None
            body = bytes(rest[at + 1 : at + 1 + length])
            first = rest[0]
            del rest[: at + 1 + length]
            return first, body
    return None


def _answer(first: int, body: bytes) -> bytes:
    kind = first >> 4
    if kind == 1:
        return b"\x20\x02\x00\x00"
    if kind == 3:
        return _answer_publish(first, body)
    if kind == 5:
        return bytes([_PUBREL, 2]) + body[:2]
    if kind == 6:
        return bytes([_PUBCOMP, 2]) + body[:2]
    if kind == 8:
        return b"\x90\x03" + body[:2] + body[-1:]
    if kind == 10:
        return b"\xb0\x02" + body[:2]
    return b"\xd0\x00" if kind == 12 else b""


def _answer_publish(first: int, body: bytes) -> bytes:
    qos = first >> 1 & 3
    end = 2 + int.from_bytes(body[:2], "big")
    topic = body[2:end]
    packet_id = body[end : end + 2] if qos else b""
    payload = body[end + len(packet_id) :]
    out = bytes([_PUBACK if qos == 1 else _PUBREC, 2]) + packet_id if qos else b""
    if topic == ECHO:
        out += _publish(ECHO, payload, qos, packet_id)
    elif topic == GIVE:
        count, given_qos, size = map(int, payload.split())
        for number in range(1, count + 1):
            given_id = struct.pack(">H", number) if given_qos else b""
            out += _publish(GIVEN, bytes(size), given_qos, given_id)
    return out


def _publish(topic: bytes, payload: bytes, qos: int, packet_id: bytes) -> bytes:
    body = struct.pack(">H", len(topic)) + topic + packet_id + payload
    length = bytearray()
    left = len(body)
    while left > 127:
        length.append(left & 127 | 128)
        left >>= 7
    length.append(left)
    return bytes([0x30 | qos << 1]) + bytes(length) + body
