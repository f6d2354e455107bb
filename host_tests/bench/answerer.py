"""The far end of a measurement, which acknowledges everything at once, or a round trip later,
and keeps nothing.

Not a broker: no sessions, no matching.  A PUBLISH to `GIVE` with the payload
`count qos bytes` makes it send that many messages on `GIVEN`; one to `ECHO` comes
back at the QoS it had.  Answers of one read go out in one write.
"""

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable

from host_tests.standin import packets as p
from tools.demo.listener import Listener

GIVE = b"bench/give"
GIVEN = b"bench/given"
ECHO = b"bench/echo"

_READ_BYTES = 65536
_NO_DELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
Answer = Callable[[bytes], bytes | bytearray | None]


class Answerer(Listener):
    """Listens on a free loopback `port`; a context manager.

    `is_quick`: TCP acknowledges at once, so that a client which writes a packet in
    pieces does not sleep 40 ms in each (Nagle's algorithm and delayed acknowledgement).
    `answer` says what goes out for a packet, None ends the connection; `connections` counts.
    What goes out does so `round_trip_s` later, without a limit to the rate.
    """

    def __init__(
        self, is_quick: bool = False, answer: Answer | None = None, round_trip_s: float = 0
    ) -> None:
        self._is_quick = is_quick
        self._answer = answer or usual_answer
        self._round_trip_s = round_trip_s
        self.connections = 0
        super().__init__(self._take)

    def _take(self, connection: socket.socket) -> None:
        connection.setsockopt(*_NO_DELAY)
        self.connections += 1
        _start(self._answer_all, connection)

    def _answer_all(self, connection: socket.socket) -> None:
        rest = bytearray()
        under_way: queue.SimpleQueue[tuple[float, bytearray]] = queue.SimpleQueue()
        if self._round_trip_s:
            _start(_send_late, connection, under_way)
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
                if out and self._round_trip_s:
                    under_way.put((time.monotonic() + self._round_trip_s, out))
                elif out:
                    connection.sendall(out)
        under_way.put((0, bytearray()))


def _send_late(connection: socket.socket, under_way: queue.SimpleQueue) -> None:
    # Until there is nothing to send.
    with contextlib.suppress(OSError):
        while (item := under_way.get())[1]:
            time.sleep(max(0.0, item[0] - time.monotonic()))
            connection.sendall(item[1])


def _start(work: Callable[..., None], *args: object) -> None:
    threading.Thread(target=work, args=args, daemon=True).start()


def giving(count: int, qos: int) -> Answer:
    """Answers a PUBLISH with `count` messages, all else as usual."""
    messages = b"".join(p.publish(GIVEN, bytes(64), qos, i) for i in range(1, count + 1))
    return lambda packet: messages if packet[0] >> 4 == p.PUBLISH else usual_answer(packet)


def usual_answer(packet: bytes) -> bytes | bytearray:
    """What the far end of a measurement says to a packet."""
    kind = packet[0] >> 4
    if kind == p.CONNECT:
        return p.connack()
    if kind == p.PUBLISH:
        return _answer_publish(packet)
    if kind == p.PUBREC:
        return p.pubrel(p.read_id(packet))
    if kind == p.PUBREL:
        return p.pubcomp(p.read_id(packet))
    if kind == p.SUBSCRIBE:
        return p.suback(p.read_id(packet), *(qos for _, qos in p.filters(packet)))
    return p.pingresp() if kind == p.PINGREQ else b""


def _answer_publish(packet: bytes) -> bytearray:
    qos, packet_id, topic, payload = p.publish_fields(packet)
    out = bytearray()
    if qos:
        out += p.puback(packet_id) if qos == 1 else p.pubrec(packet_id)
    if topic == ECHO:
        out += p.publish(ECHO, payload, qos, packet_id)
    elif topic == GIVE:
        count, given_qos, size = map(int, payload.split())
        for number in range(1, count + 1):
            out += p.publish(GIVEN, bytes(size), given_qos, number)
    return out
