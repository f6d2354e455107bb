"""A scripted broker with one session: takes, acknowledges and sends messages.

At level 5 it uses what that level leaves to a broker, as settings and faults say:
its own limits, DISCONNECT at any moment, reasons of 0x80 and more, the session's end.

It keeps what MQTT 3.1 asks of a server over connections, sends again on a new
connection (and after `RETRY_MS` when a packet was made to get lost), and can be
restarted with or without its session.  It runs in the world's time, never waits.
"""

from collections import deque
from dataclasses import dataclass

from host_tests.standin import packets as p

RETRY_MS = 20_000
_FOR_EVER = 0xFFFFFFFF
_NO_ID = 0x92
_TAKEN_OVER = 0x8E
_BUSY = 0x89
_NOT_GRANTED = 0x80
REFUSED_TOPIC = b"no/"


@dataclass(slots=True, eq=False)
class Outgoing:
    """A message of the broker to the client."""

    topic: bytes
    payload: bytes
    qos: int
    packet_id: int = 0
    is_released: bool = False  # PUBREC came
    is_sent: bool = False

    @property
    def key(self):
        return self.topic + b"\0" + self.payload


class Broker:
    """As the settings say: `serve` is the number of unacknowledged messages that it sends at
    once, `late` that QoS 2 messages are passed on at PUBREL instead of at PUBLISH; MQTT allows
    both."""

    def __init__(self, world, settings):
        self._settings = settings
        self._world = world
        self._most_unacked = settings.serve  # on this connection
        self._most_bytes = 1 << 30  # of a packet, on this connection
        self._kept_s = 0  # seconds for which the session outlives its connection
        self._left_at = 0
        self.queue = deque()
        self.link = None
        self.unacked = []
        self._forget()

    def _forget(self):
        self._has_session = False
        for message in self.unacked:
            self._world.rules.incoming.on_forgotten(message.key)
        self.unacked = []
        self._held = {}
        self._last_id = 0
        self.filters = {}  # that it granted, with their QoS
        self._is_subscribed = not self._settings.subscribe

    def send(self, topic, payload, qos):
        self.queue.append(Outgoing(topic, payload, qos))
        self._pump()

    @property
    def is_done(self):
        """Has everything it had to send been acknowledged?"""
        return not self.unacked and not self.queue

    # --- what happens to it ---------------------------------------------------------

    def restart(self, forget):
        """It dies and is there again at once, with its session or without."""
        if self.link:
            self.link.drop()
            self.link = None
        if forget:
            self._lose_session()

    def _lose_session(self):
        if self._has_session:
            self._world.rules.sessions_lost += 1
        self._forget()

    def on_closed(self, link):
        link.is_dropped = True
        if link is self.link:
            self.link = None
            self._left_at = self._world.now

    def on_bytes(self, link, data):
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
            if link.level < 5 and self._is_losable(packet):
                if world.meet(world.heard, link):
                    world.call(RETRY_MS, self._send_again)
                    continue
            self._handle(link, packet)

    def _is_losable(self, packet):
        # A lost PUBLISH would be a disorder that no client can mend; so would a lost
        # PUBREL where that passes the message on.
        kind = packet[0] >> 4
        return kind != p.PUBLISH and not (kind == p.PUBREL and self._settings.late)

    def _handle(self, link, packet):
        kind = packet[0] >> 4
        if kind == p.PUBLISH:
            self._on_publish(link, packet)
        elif kind == p.PUBREL:
            packet_id = p.read_id(packet)
            key = self._held.pop(packet_id, None)
            if key is not None and self._settings.late:
                self._world.rules.on_delivered(key, False)
            is_unknown = key is None and link.level == 5
            self._answer(link, p.pubcomp(packet_id, _NO_ID if is_unknown else None))
        elif kind in (p.PUBACK, p.PUBREC, p.PUBCOMP):
            self._on_ack(link, kind, p.read_id(packet), p.reason_of(packet))
        else:
            self._on_control(link, kind, packet)

    # --- from the client ------------------------------------------------------------

    def _on_publish(self, link, packet):
        qos, packet_id, topic, payload = p.publish_fields(packet, link.level)
        if link.level == 5:
            topic = _named(link, topic, p.properties_of(packet))
        key = topic + b"\0" + payload
        rules = self._world.rules
        held = self._held.get(packet_id) if qos == 2 else None
        if held is None:
            reason = self._judge(link, qos)
            if reason:
                self._answer(link, p.answer(p.PUBACK + qos - 1, packet_id, reason=reason))
                return
        if qos < 2:
            rules.on_delivered(key, bool(packet[0] & 8))
            if qos:
                self._answer(link, p.puback(packet_id))
            return
        if held is None:
            self._held[packet_id] = key
            if not self._settings.late:
                rules.on_delivered(key, bool(packet[0] & 8))
        elif held != key:
            rules.fail("MQTT-4.3.3-1", f"packet id {packet_id} used while the broker holds it")
        self._answer(link, p.pubrec(packet_id))

    def _judge(self, link, qos):
        # -> the reason for which it does not take a message, 0 if it does.
        struck = self._world.meet(self._world.judged, link) if qos and link.level == 5 else None
        if not struck:
            return 0
        self._world.rules.outgoing.has_denied = True
        return struck.value

    def _on_control(self, link, kind, packet):
        none = p.no_properties(link.level)
        if kind == p.CONNECT:
            self._on_connect(link, p.Connect(packet))
        elif kind == p.PINGREQ:
            self._answer(link, p.pingresp())
        elif kind == p.SUBSCRIBE:
            granted = self._grant(p.filters(packet, link.level))
            self._is_subscribed = True
            self._answer(link, p.suback(p.read_id(packet), *granted, properties=none))
            self._pump()
        elif kind == p.UNSUBSCRIBE:
            self._is_subscribed = not self._settings.subscribe
            codes = []
            for name in p.names(packet, link.level):
                self.filters.pop(name, None)
                codes += [0] * len(none)
            self._answer(link, p.unsuback(p.read_id(packet), *codes, properties=none))
        else:  # DISCONNECT
            self.on_closed(link)

    def _grant(self, asked):
        # Below REFUSED_TOPIC it grants nothing.
        granted = []
        for name, options in asked:
            if name.startswith(REFUSED_TOPIC):
                granted.append(_NOT_GRANTED)
            else:
                self.filters[name] = options & 3
                granted.append(options & 3)
        return granted

    def _on_connect(self, link, hello):
        if self.link and self.link is not link:
            # The client came back before the old link was found dead.
            self._dismiss(self.link, _TAKEN_OVER)
        self.link = link
        link.level = hello.level
        none = p.no_properties(link.level)
        struck = self._world.meet(self._world.hello, link) if none else None
        if struck:
            link.push(p.auth(struck.value, none))
            return
        if link.is_busy:
            link.push(p.connack(_BUSY if none else 3, 0, none))
            link.drop()
            return
        away_ms = self._world.now - self._left_at
        if hello.is_clean or away_ms >= 1000 * self._kept_s and self._kept_s != _FOR_EVER:
            self._lose_session()
        is_present = self._has_session
        if not is_present:
            self._world.rules.has_session_begun = True
        self._has_session = True
        self._agree(hello)
        is_told = hello.level > 3 and is_present
        link.push(p.connack(0, is_told, self._terms() if none else b""))
        self._send_again()
        self._pump()

    def _agree(self, hello):
        # What holds for this connection, and for the session when it is over.
        asked = hello.properties
        self._kept_s = 0 if hello.is_clean else _FOR_EVER
        if hello.level == 5:
            self._kept_s = self._settings.expiry or asked.get("session_expiry", 0)
        self._most_unacked = min(self._settings.serve, asked.get("receive_maximum", 65535))
        self._most_bytes = asked.get("maximum_packet_size", 1 << 30)

    def _terms(self):
        # What it says in CONNACK at level 5.
        settings = self._settings
        names = {
            "receive_maximum": settings.receive,
            "maximum_packet_size": settings.most,
            "topic_alias_maximum": settings.aliases,
            "session_expiry": settings.expiry,
            "server_keep_alive": settings.alive,
        }
        return p.properties(**{name: value for name, value in names.items() if value})

    def _dismiss(self, link, reason):
        # The broker ends the connection; level 5 says why.
        if link.level == 5:
            link.push(p.disconnect(reason, p.NO_PROPERTIES))
        link.drop()

    # --- to the client --------------------------------------------------------------

    def _on_ack(self, link, kind, packet_id, reason):
        message = next((m for m in self.unacked if m.packet_id == packet_id), None)
        if message and reason > 0x7F and kind != p.PUBCOMP:
            self.unacked.remove(message)  # MQTT-4.3.3-4
            self._pump()
        elif kind == p.PUBREC:
            if message:
                message.is_released = True
            self._answer(link, p.pubrel(packet_id))
        elif message and (message.qos == 1 if kind == p.PUBACK else message.is_released):
            self.unacked.remove(message)
            self._pump()

    def _send_again(self):
        link = self.link
        for message in self.unacked:
            if not link:
                return
            if message.is_released:
                self._answer(link, p.pubrel(message.packet_id, link.level < 5))
            else:
                self._publish(link, message)

    def _pump(self):
        while self.queue and self.link and self._is_subscribed:
            message = self.queue[0]
            if message.qos:
                if len(self.unacked) >= self._most_unacked:
                    return
                message.packet_id = self._next_id()
            self.queue.popleft()
            if len(self._packet(self.link, message)) > self._most_bytes:
                self._world.rules.incoming.on_forgotten(message.key)  # MQTT-3.1.2-25
                continue
            if message.qos:
                self.unacked.append(message)
            self._publish(self.link, message)

    def _next_id(self):
        if self._settings.reuse:
            used = {message.packet_id for message in self.unacked}
            return next(number for number in range(1, 65536) if number not in used)
        self._last_id = self._last_id % 65535 + 1
        return self._last_id

    def _packet(self, link, m):
        section = p.no_properties(link.level)
        if section and self._settings.talk:
            pairs = [(b"from", b"somebody"), (b"from", b"somebody else")]
            section = p.properties(message_expiry=60, content_type=b"text", user_property=pairs)
        return p.publish(m.topic, m.payload, m.qos, m.packet_id, m.is_sent, 0, section)

    def _publish(self, link, m):
        packet = self._packet(link, m)
        m.is_sent = True
        if link.level == 5:
            self._answer(link, packet)
        else:
            link.push(packet)

    def _answer(self, link, packet):
        world = self._world
        struck = world.meet(world.sent if link.level == 5 else world.answer, link)
        if not struck:
            link.push(packet)
        elif struck.kind == "challenge":
            link.push(p.auth(struck.value, p.NO_PROPERTIES))
            link.push(packet)
        elif struck.kind == "dismiss":
            self._dismiss(link, struck.value)
            self.on_closed(link)
        elif struck.kind == "late":
            world.call(struck.value, lambda: link.push(packet))
        elif struck.kind == "twice":
            link.push(packet)
            if packet[0] >> 4 == p.PUBREL:
                packet = bytes((packet[0] | 8,)) + packet[1:]
            link.push(packet)
        else:  # lose
            world.call(RETRY_MS, self._send_again)


def _named(link, topic, properties):
    # The topic that an alias stands for; the rules have checked it.
    alias = properties.get("topic_alias")
    if alias and topic:
        link.aliases[alias] = topic
    return topic or link.aliases[alias or 0]
