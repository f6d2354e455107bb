"""The rules for messages from the broker to the program on the device.

Handed over once at QoS 2, at least once at QoS 1, in order; acknowledged after the
handler returned, in the order of arrival.  MQTT 3.1 §4; MQTT 5 §4.3 and §4.6.
"""

from dataclasses import dataclass

from host_tests.standin import packets as p

_SLACK_MS = 1000
_MUST = 1  # be handed over
_MAY = 2
_MUST_NOT = 3


@dataclass(slots=True, eq=False)
class Message:
    """One message on its way to the program."""

    number: int
    key: bytes
    qos: int
    handled: int = 0
    has_pubrec: bool = False  # the client sent it, since it was handed over last
    may_repeat: bool = False  # a reset fell between its handler and the barrier
    is_oversize: bool = False  # larger than the client's buffer
    is_forgotten: bool = False  # with the session of the broker
    held_at: int = 0  # ms of the device's clock, when its handler returned

    def __str__(self):
        return f"received message {self.number} (QoS {self.qos})"


@dataclass(eq=False)
class Arrival:
    """One PUBLISH or PUBREL that the client has read and has to answer."""

    message: Message | None
    packet_id: int
    dup: bool
    duty: int
    was_unsure: bool = False  # whether its id was held, when it came
    refusal: int = 0  # the reason for which the program refused it

    def __post_init__(self):
        self.is_handled = self.duty == _MUST_NOT
        self.is_excused = self.duty == _MAY


class Incoming:
    """Judges what is handed over and acknowledged.

    `buffer_bytes`, `most_held` and `held_ms` are settings of the client."""

    def __init__(self, rules):
        self._rules = rules
        self._fail = rules.fail
        self.buffer_bytes = 65535
        self.most_held = 65535
        self.held_ms = 300_000
        self.messages = {}
        self._held = {}  # handed over, PUBREL not read yet
        self._unsure = set()  # whether these are held, since a reset
        self._closing = set()  # PUBREL read, PUBCOMP not yet sent
        self.unrecorded = set()  # of the session before, until it is recorded
        # Of a session that is over, or so it looked before a reset: a place may be taken for as
        # long as an id is held.
        self.may_hold_old_ids = False
        self._current = None
        self._newest = [-1, -1, -1]

    def on_sent(self, key, qos):
        if key in self.messages:
            raise ValueError(f"simulated messages must differ: {key!r} was sent before")
        self.messages[key] = Message(len(self.messages), key, qos)

    # --- what the client reads ------------------------------------------------------

    def on_publish(self, link, packet):
        self._check_current()
        qos, packet_id, topic, payload = p.publish_fields(packet, self._rules.level)
        message = self.messages[topic + b"\0" + payload]
        message.is_oversize = len(packet) - p.body_start(packet) > self.buffer_bytes
        duty = self._duty(link, message, packet_id)
        arrival = Arrival(message, packet_id, bool(packet[0] & 8), duty)
        arrival.was_unsure = packet_id in self._unsure or message.is_oversize
        self._current = arrival
        if qos:
            link.notes.owed[p.PUBACK if qos == 1 else p.PUBREC].append(arrival)
        if qos == 2 and duty == _MUST_NOT:
            if packet_id not in self._held:
                message.held_at = self._rules.device_ms()
                self._held[packet_id] = message

    def _duty(self, link, message, packet_id):
        if message.qos == 2:
            self._let_go(packet_id)
            if packet_id in self._held:
                return _MUST_NOT
            if packet_id in self._unsure:
                return _MAY
            # RT-AWAITREL: behind one without room none is taken, so as to keep the order.
            if len(self._held) + len(self._unsure) >= self.most_held:
                link.notes.is_starved = True
            if link.notes.is_starved:
                return _MAY
        return _MUST_NOT if message.is_oversize else _MUST

    def _let_go(self, packet_id):
        # RT-AWAITREL-T: what was held for so long is forgotten, by a clock that may be late.
        message = self._held.get(packet_id)
        if not message:
            return
        over_ms = self._rules.device_ms() - message.held_at - self.held_ms
        if over_ms >= 0:
            message.may_repeat = True
            del self._held[packet_id]
            if over_ms < _SLACK_MS:
                self._unsure.add(packet_id)

    def on_pubrel(self, link, packet):
        self._check_current()
        packet_id = p.read_id(packet)
        self._held.pop(packet_id, None)
        self._unsure.discard(packet_id)
        self._closing.add(packet_id)
        link.notes.owed[p.PUBCOMP].append(Arrival(None, packet_id, False, _MUST_NOT))

    # --- what the program sees ------------------------------------------------------

    def on_handling(self, key, qos, dup, packet_id):
        now = self._current
        if now is None or now.duty == _MUST_NOT or now.is_handled:
            self._fail("MQTT-4.3.3-10", f"{key!r} is handed over again")
        assert now.message
        read = now.message.key, now.message.qos, now.dup, now.packet_id
        if read != (key, qos, dup, packet_id):
            self._fail("31-3.3", f"what is handed over is not what was read: {key!r}")
        message = now.message
        if message.number < self._newest[qos] and not message.handled and not now.dup:
            self._fail("31-4.3-WINDOW", f"{message} after message {self._newest[qos]}")
        self._newest[qos] = max(self._newest[qos], message.number)
        if qos == 2 and message.handled and not message.may_repeat:
            self._fail("MQTT-4.3.3-10", f"{message} is handed over again")

    def on_handled(self):
        now = self._current
        assert now and now.message
        now.is_handled = True
        now.is_excused = False
        now.message.handled += 1
        now.message.may_repeat = now.message.has_pubrec = False
        if now.message.qos == 2:
            self._unsure.discard(now.packet_id)
            self._held[now.packet_id] = now.message
            now.message.held_at = self._rules.device_ms()

    def on_declined(self, reason):
        """The handler refused the message: the answer says why, and its id is free."""
        now = self._current
        assert now and now.message
        now.refusal = reason
        now.message.may_repeat = True  # if the answer gets lost
        self._held.pop(now.packet_id, None)

    def on_raised(self):
        """The handler raised: the message stays unacknowledged."""
        assert self._current
        self._current.is_excused = True

    # --- what the client sends ------------------------------------------------------

    def on_answer(self, link, packet):
        kind = packet[0] >> 4
        packet_id = p.read_id(packet)
        name = p.NAMES[kind]
        owed = link.notes.owed[kind]
        while owed:
            arrival = owed.pop(0)
            if arrival.packet_id == packet_id and self._may_answer(arrival, owed):
                break
            if not arrival.is_excused:
                rule = "MQTT-4.6.0-2" if kind == p.PUBACK else "MQTT-4.6.0-3"
                self._fail(rule, f"{name} for id {packet_id} before that for {arrival.packet_id}")
        else:
            self._fail("31-3.3-QOS2RX", f"{name} for id {packet_id}, which waits for none")
        if not arrival.is_handled and not (kind == p.PUBREC and arrival.was_unsure):
            self._fail("MQTT-4.3.2-4", f"{name} for id {packet_id} before the handler returned")
        if p.reason_of(packet) != arrival.refusal and kind != p.PUBCOMP:
            self._fail("MQTT-4.3.3-4", f"{name} for id {packet_id}, which was not refused so")
        if kind == p.PUBREC and arrival.message:
            arrival.message.has_pubrec = True
            if not arrival.is_handled and self._rules.secret_losses:
                arrival.message.is_forgotten = True  # taken for a repetition
        elif kind == p.PUBCOMP:
            self._closing.discard(packet_id)

    def _may_answer(self, arrival, later):
        # One that was not taken is answered when it comes again, not before.
        if arrival.is_handled or not arrival.is_excused:
            return True
        packet_id = arrival.packet_id
        if any(other.packet_id == packet_id and other.is_handled for other in later):
            return False
        return arrival.was_unsure

    def check_answered(self, link):
        """poll() returned: nothing that was read may be left unanswered."""
        self._check_current()
        self._current = None
        for kind, owed in link.notes.owed.items():
            for arrival in owed:
                if not arrival.is_excused:
                    self._fail("MQTT-4.3.3-11", f"{arrival.packet_id} got no {p.NAMES[kind]}")

    def _check_current(self):
        now = self._current
        if now and now.duty == _MUST and not now.is_handled and not now.is_excused:
            self._fail("31-4.1-Q1", f"{now.message} was read and not handed over")

    # --- the rest -------------------------------------------------------------------

    def on_reset(self):
        """What was handed over and not yet acknowledged may come again."""
        self._current = None
        self._unsure |= self._closing | self.unrecorded
        self.may_hold_old_ids |= bool(self.unrecorded)
        self._closing.clear()
        is_forgetful = self._rules.is_forgetful
        for packet_id, message in list(self._held.items()):
            if is_forgetful or not message.has_pubrec:
                message.may_repeat = True
                self._unsure.add(packet_id)
                del self._held[packet_id]

    def on_session_lost(self):
        """The broker's ids begin anew, which the client cannot know."""
        self._unsure |= set(self._held)
        self.may_hold_old_ids |= bool(self._unsure)
        self._held.clear()

    def on_clean_connect(self):
        """The client asks for a clean session: from now on it may forget what it held."""
        for message in self._held.values():
            message.may_repeat = True
        self._unsure |= set(self._held)
        self._held.clear()

    def on_new_session(self):
        """The client knows that the broker's ids begin anew, once that is recorded."""
        self.unrecorded = set(self._held) | self._unsure | self._closing
        self._held.clear()
        self._unsure.clear()
        self._closing.clear()

    def on_forgotten(self, key):
        self.messages[key].is_forgotten = True

    def check_end(self):
        for message in self.messages.values():
            if message.is_forgotten or message.is_oversize:
                continue
            if message.qos and not message.handled:
                self._fail(f"31-4.1-Q{message.qos}", f"{message} is lost")
