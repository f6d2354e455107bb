"""The far end of a measurement: it acknowledges everything at once and keeps nothing.

Not a broker: no sessions, no matching.  A PUBLISH to `GIVE` with the payload
`count qos bytes` makes it send that many messages on `GIVEN`; one to `ECHO` comes
back at the QoS it had.  Answers of one read go out in one write.
"""

import contextlib
import socket
import threading
from collections.abc import Callable

from host_tests.standin import packets as p
from tools.demo.listener import Listener

GIVE = b"bench/give"
GIVEN = b"bench/given"
ECHO = b"bench/echo"

_READ_BYTES = 65536
Answer = Callable[[bytes], bytes | bytearray | None]


class Answerer:
    """Listens on a free loopback `port` from creation to `close()`; a context manager.

    `is_quick`: TCP acknowledges at once, so that a client which writes a packet in
    pieces does not sleep 40 ms in each (Nagle's algorithm and delayed acknowledgement).
    `answer` says what goes out for a packet, None ends the connection; `connections` counts.
    """

    def __init__(self, is_quick: bool = False, answer: Answer | None = None) -> None:
        self._is_quick = is_quick
        self._answer = answer or usual_answer
        self.connections = 0
        self._listener = Listener(self._take)
        self.port = self._listener.port

    def __enter__(self) -> "Answerer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop listening; open connections end with their clients."""
        self._listener.close()

    def _take(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connections += 1
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        rest = bytearray()
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(_READ_BYTES):
                if self._is_quick and hasattr(socket, "TCP_QUICKACK"):
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                rest += data
                out = bytearray()
                while packet := p.take(rest):
                    answer = self._answer(packet)
                    if answer is None:
                        return
                    out += answer
                if out:
                    connection.sendall(out)


class Giver:
    """Answers a PUBLISH with `count` messages; to be an Answerer's `answer`."""

    def __init__(self, count: int, qos: int) -> None:
        self._packets = [p.publish(GIVEN, bytes(64), qos, i) for i in range(1, count + 1)]

    def answer(self, packet: bytes) -> bytes | bytearray:
        if packet[0] >> 4 == p.PUBLISH:
            return b"".join(self._packets)
        return usual_answer(packet)


def usual_answer(packet: bytes, level: int = 4) -> bytes | bytearray:
    """What the far end of a measurement says to a packet; `level`: 5 has properties."""
    kind = packet[0] >> 4
    none = p.no_properties(level)
    if kind == p.CONNECT:
        return p.connack(properties=none)
    if kind == p.PUBLISH:
        return _answer_publish(packet, level)
    if kind == p.PUBREC:
        return p.pubrel(p.read_id(packet))
    if kind == p.PUBREL:
        return p.pubcomp(p.read_id(packet))
    if kind == p.SUBSCRIBE:
        granted = (options & 3 for _, options in p.filters(packet, level))
        return p.suback(p.read_id(packet), *granted, properties=none)
    if kind == p.UNSUBSCRIBE:
        codes = [0] * len(p.names(packet, 5)) if none else []
        return p.unsuback(p.read_id(packet), *codes, properties=none)
    return p.pingresp() if kind == p.PINGREQ else b""


def _answer_publish(packet: bytes, level: int) -> bytearray:
    qos, packet_id, topic, payload = p.publish_fields(packet, level)
    none = p.no_properties(level)
    out = bytearray()
    if qos:
        out += p.puback(packet_id) if qos == 1 else p.pubrec(packet_id)
    if topic == ECHO:
        out += p.publish(ECHO, payload, qos, packet_id, properties=none)
    elif topic == GIVE:
        count, given_qos, size = map(int, payload.split())
        for number in range(1, count + 1):
            out += p.publish(GIVEN, bytes(size), given_qos, number, properties=none)
    return out
