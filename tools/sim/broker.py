"""A scripted broker with one session: takes, acknowledges and sends messages.

It keeps what MQTT 3.1 asks of a server over connections, sends again on a new
connection (and after `RETRY_MS` when a packet was made to get lost), and can be
restarted with or without its session.  It runs in the world's time, never waits.
"""

from collections import deque
from typing import Any

from tools.standin import packets as p

from .network import Link

RETRY_MS = 20_000


class Outgoing:
    """A message of the broker to the client."""

    __slots__ = ("topic", "payload", "qos", "packet_id", "is_released", "is_sent")

    def __init__(self, topic: bytes, payload: bytes, qos: int):
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.packet_id = 0
        self.is_released = False  # PUBREC came
        self.is_sent = False

    @property
    def key(self) -> bytes:
        return self.topic + b"\0" + self.payload


class Broker:
    """`window`: unacknowledged messages it sends at once.  `is_late`: QoS 2 messages
    are passed on at PUBREL instead of at PUBLISH; MQTT allows both.  `reuses_ids`: the
    lowest free packet id comes next instead of one after the other."""

    def __init__(
        self,
        world: Any,
        window: int,
        is_late: bool,
        needs_subscription: bool,
        reuses_ids: bool = False,
    ):
        self._world = world
        self._window = window
        self._is_late = is_late
        self._needs_subscription = needs_subscription
        self._reuses_ids = reuses_ids
        self.queue: deque[Outgoing] = deque()
        self.link: Link | None = None
        self.unacked: list[Outgoing] = []
        self._forget()

    def _forget(self) -> None:
        self._has_session = False
        self._is_clean = False  # the session ends with its connection
        for message in self.unacked:
            self._world.rules.incoming.on_forgotten(message.key)
        self.unacked = []
        self._held: dict[int, bytes] = {}
        self._last_id = 0
        self._is_subscribed = not self._needs_subscription

    def send(self, topic: bytes, payload: bytes, qos: int) -> None:
        """A message for the client, from some other client."""
        self.queue.append(Outgoing(topic, payload, qos))
        self._pump()

    @property
    def is_done(self) -> bool:
        """Has everything it had to send been acknowledged?"""
        return not self.unacked and not self.queue

    # --- what happens to it ---------------------------------------------------------

    def restart(self, forget: bool) -> None:
        """It dies and is there again at once, with its session or without."""
        if self.link:
            self.link.drop()
            self.link = None
        if forget:
            self._lose_session()

    def _lose_session(self) -> None:
        if self._has_session:
            self._world.rules.on_session_lost()
        self._forget()

    def on_closed(self, link: Link) -> None:
        """The connection `link` is gone."""
        link.is_dropped = True
        if link is self.link:
            self.link = None

    def on_bytes(self, link: Link, data: bytes) -> None:
        """Bytes of the client arrived."""
        world = self._world
        heard = link.heard
        heard += data
        link.in_transit -= len(data)
        while not link.is_dropped:
            if world.pressure and link.unread_bytes() > world.pressure:
                link.is_paused = True
                return
            packet = p.take(heard)
            if packet is None:
                return
            if self._is_losable(packet):
                struck = world.heard.step()
                if struck:
                    world.strike(struck, link)
                    world.call(RETRY_MS, self._send_again)
                    continue
            self._handle(link, packet)

    def _is_losable(self, packet: bytes) -> bool:
        # A lost PUBLISH would be a disorder that no client can mend; so would a lost
        # PUBREL where that passes the message on.
        kind = packet[0] >> 4
        return kind != p.PUBLISH and not (kind == p.PUBREL and self._is_late)

    def _handle(self, link: Link, packet: bytes) -> None:
        kind = packet[0] >> 4
        if kind == p.PUBLISH:
            self._on_publish(link, packet)
        elif kind == p.PUBREL:
            packet_id = p.read_id(packet)
            key = self._held.pop(packet_id, None)
            if key is not None and self._is_late:
                self._world.rules.on_delivered(key, False)
            self._answer(link, p.answer(p.PUBCOMP, packet_id))
        elif kind in (p.PUBACK, p.PUBREC, p.PUBCOMP):
            self._on_ack(link, kind, p.read_id(packet))
        else:
            self._on_control(link, kind, packet)

    # --- from the client ------------------------------------------------------------

    def _on_publish(self, link: Link, packet: bytes) -> None:
        qos, packet_id, topic, payload = p.publish_fields(packet)
        key = topic + b"\0" + payload
        rules = self._world.rules
        if qos < 2:
            rules.on_delivered(key, bool(packet[0] & 8))
            if qos:
                self._answer(link, p.answer(p.PUBACK, packet_id))
            return
        held = self._held.get(packet_id)
        if held is None:
            self._held[packet_id] = key
            if not self._is_late:
                rules.on_delivered(key, bool(packet[0] & 8))
        elif held != key:
            rules.fail("MQTT-4.3.3-1", f"packet id {packet_id} used while the broker holds it")
        self._answer(link, p.answer(p.PUBREC, packet_id))

    def _on_control(self, link: Link, kind: int, packet: bytes) -> None:
        if kind == p.CONNECT:
            self._on_connect(link, packet)
        elif kind == p.PINGREQ:
            self._answer(link, p.pingresp())
        elif kind == p.SUBSCRIBE:
            granted = (qos for _, qos in p.filters(packet))
            self._is_subscribed = True
            self._answer(link, p.suback(p.read_id(packet), *granted))
            self._pump()
        elif kind == p.UNSUBSCRIBE:
            self._is_subscribed = not self._needs_subscription
            self._answer(link, p.unsuback(p.read_id(packet)))
        else:  # DISCONNECT
            self.on_closed(link)

    def _on_connect(self, link: Link, packet: bytes) -> None:
        if self.link and self.link is not link:
            self.link.drop()  # the client came back before the old link was found dead
        self.link = link
        if link.is_busy:
            link.push(p.connack(3))
            link.drop()
            return
        hello = p.Connect(packet)
        if hello.is_clean or self._is_clean:
            self._lose_session()
        is_present = self._has_session
        if not is_present:
            self._world.rules.on_session_begun()
        self._has_session = True
        self._is_clean = hello.is_clean
        link.push(p.connack(0, hello.level > 3 and is_present))
        self._send_again()
        self._pump()

    # --- to the client --------------------------------------------------------------

    def _on_ack(self, link: Link, kind: int, packet_id: int) -> None:
        message = next((m for m in self.unacked if m.packet_id == packet_id), None)
        if kind == p.PUBREC:
            if message:
                message.is_released = True
            self._answer(link, p.answer(p.PUBREL, packet_id))
        elif message and (message.qos == 1 if kind == p.PUBACK else message.is_released):
            self.unacked.remove(message)
            self._pump()

    def _send_again(self) -> None:
        link = self.link
        for message in self.unacked:
            if not link:
                return
            if message.is_released:
                self._answer(link, p.answer(p.PUBREL, message.packet_id, True))
            else:
                self._publish(link, message)

    def _pump(self) -> None:
        while self.queue and self.link and self._is_subscribed:
            message = self.queue[0]
            if message.qos:
                if len(self.unacked) >= self._window:
                    return
                message.packet_id = self._next_id()
                self.unacked.append(message)
            self.queue.popleft()
            self._publish(self.link, message)

    def _next_id(self) -> int:
        if self._reuses_ids:
            used = {message.packet_id for message in self.unacked}
            return next(number for number in range(1, 65536) if number not in used)
        self._last_id = self._last_id % 65535 + 1
        return self._last_id

    def _publish(self, link: Link, m: Outgoing) -> None:
        dup = m.is_sent
        m.is_sent = True
        link.push(p.publish(m.topic, m.payload, m.qos, m.packet_id, dup))

    def _answer(self, link: Link, packet: bytes) -> None:
        world = self._world
        struck = world.answer.step()
        if not struck:
            link.push(packet)
            return
        world.strike(struck, link)
        if struck.kind == "late":
            world.call(struck.value, lambda: link.push(packet))
        elif struck.kind == "twice":
            link.push(packet)
            if packet[0] >> 4 == p.PUBREL:
                packet = bytes((packet[0] | 8,)) + packet[1:]
            link.push(packet)
        else:  # lose
            world.call(RETRY_MS, self._send_again)
