"""The rules for messages from the client to the broker.

Every message that `publish()` took is followed by its topic and payload, which have to
differ from message to message, as the readings of a sensor do.  MQTT 3.1 §4; MQTT 5
§4.3 and §4.6.
"""

from dataclasses import dataclass

from host_tests.standin import packets as p
from umqtt31 import CLOSED, TIMEOUT

from .faults import NEVER
from .network import Link

_SLACK_MS = 1000  # timers need not be looked at more often


@dataclass(slots=True, eq=False)
class Flow:
    """One message on its way out."""

    number: int
    key: bytes
    qos: int
    packet_id: int = 0
    is_accepted: bool = False  # publish() returned
    is_promised: bool = False  # and the store was given the time to keep it
    was_online: bool = False  # a connection was open while it was there
    may_be_sent: bool = False  # for all that the device knows after a reset
    is_sent: bool = False  # in this session
    was_sent: bool = False  # in any
    is_in_doubt: bool = False  # the write that was to send it raised an error
    was_chosen: bool = False  # its turn had come, but the stream had no room
    link: Link | None = None  # where its PUBLISH went out last
    has_pubrec: bool = False  # the client has read it
    may_have_pubrec: bool = False  # it had, before a reset
    is_pubrec_new: bool = False  # and has not answered it yet
    pubrecs: int = 0  # read on pubrec_link and not answered each by a PUBREL
    pubrec_link: Link | None = None  # where it was read
    pubrec_number: int = 0  # in the order in which the PUBRECs to be answered were read
    is_released: bool = False  # PUBREL went out
    rel_link: Link | None = None
    done_life: int = -1  # the boot that read the last acknowledgement
    done_at: int = 0
    drop_life: int = -1  # the boot that gave it up
    delivered: int = 0
    life: int = 0  # the boot that accepted it
    age: int = 0  # seconds that it may wait, 0: any number
    refusal: int = 0  # the reason for which the broker did not take it
    expires_ms: int = NEVER  # by the device's clock, while it waits in that boot

    def __str__(self):
        return f"message {self.number} (QoS {self.qos}, id {self.packet_id})"


class Outgoing:
    """Judges the client's PUBLISHes and PUBRELs.  `window`, `is_ordered`: its settings."""

    def __init__(self, rules):
        self._rules = rules
        self._fail = rules.fail
        self.window = 65535
        self.is_ordered = False
        self.has_limits = False  # the broker takes packets of some bytes only
        self.has_denied = False  # the broker did not take a message, and took it another time
        self.is_late = False  # the broker passes QoS 2 messages on at PUBREL
        self.flows = {}
        self._in_flight = []  # sent and not acknowledged, oldest first
        self._by_id = {}  # the newest message of each packet id
        self._first = [-1, -1, -1]  # newest message passed on, by QoS
        self._last = -1  # message passed on last
        self._last_qos0 = -1
        self._newest = -1  # number of the newest message
        self._pubrecs = 0
        # Packet ids of messages that were done with a PUBREC unanswered, which may be on the next
        # connection, too.
        self._unanswered = set()
        self.newest_write = []  # what the write that goes on is to send
        self._unpromised = []
        self._aging = []  # with an age limit, and never sent so far
        # Messages of QoS 0 given up in this life of which the record says that it was one of
        # another life, which a reset may have taken.
        self._doubtful_drops = 0
        self._refused = []  # by the broker, and the program does not know it yet
        # What of the session before a new one was under way, until that is recorded, and whether
        # its PUBREC had come.
        self.unrecorded = []

    # --- what the program does ------------------------------------------------------

    def on_accepting(self, key, qos, is_online, max_age=0):
        if key in self.flows:
            raise ValueError(f"simulated messages must differ: {key!r} was published before")
        self._newest += 1
        flow = self.flows[key] = Flow(self._newest, key, qos)
        flow.was_online = is_online
        flow.life = self._rules.life
        if max_age:
            flow.age = max_age
            self._aging.append(flow)
        return flow

    def on_accepted(self, flow, packet_id, is_deferred):
        """publish() returned; a deferred store keeps the message from the next poll() on."""
        flow.is_accepted = True
        if flow.age:
            flow.expires_ms = self._rules.device_ms() + 1000 * flow.age
        if not flow.is_sent and flow.number < self._newest:
            self._newest += 1  # a hook published others meanwhile
            flow.number = self._newest
        if is_deferred:
            self._unpromised.append(flow)
        else:
            flow.is_promised = True
        if flow.qos:
            if not packet_id or flow.packet_id not in (0, packet_id):
                self._fail("31-2.4-ID", f"publish() returned id {packet_id} for {flow}")
            self._name(flow, packet_id)

    def on_kept(self):
        """poll(), connect() or reconnect() is over: what was accepted before is kept."""
        for flow in self._unpromised:
            flow.is_promised = True
        self._unpromised.clear()

    def on_refused(self, flow, is_to_be_tried_again=False, may_be_kept=False):
        """publish() raised: the message must never be seen, unless at QoS 0, where the
        connection may have broken while it was sent, and behind a reset, if the flash kept it
        and could not say so."""
        if may_be_kept and not flow.is_sent:
            flow.drop_life = self._rules.life
        elif not flow.is_sent:
            del self.flows[flow.key]
            if flow in self._aging:
                self._aging.remove(flow)
        elif flow.qos or is_to_be_tried_again:
            self._fail("publish", f"raised, but {flow} was sent")

    def on_dropped(self, packet_id, reason):
        """The client gave a message up and said so; a clean session ends all of them."""
        is_old = reason == TIMEOUT
        for flow in self._refused:  # a reason of the broker's, which the program is told once
            if flow.packet_id == packet_id and flow.refusal == reason:
                self._refused.remove(flow)
                flow.drop_life = self._rules.life
                return
        if 0x80 <= reason <= 0xFF and not self.has_limits:
            self._fail("overflow", f"id {packet_id} is given up for {reason:#x}")
        flow = self._find_waiting(packet_id, is_old)
        if is_old and not self._is_old(flow):
            self._fail("max_age", f"{flow} is given up before its time")
        # After a reset what is beyond the window waits, though it may have been sent.
        if flow in self._in_flight and reason != CLOSED and not flow.may_be_sent:
            self._fail("overflow", f"{flow} was in flight and is given up")
        flow.drop_life = self._rules.life
        if flow in self._in_flight:
            self._in_flight.remove(flow)

    def check_told(self):
        """poll() returned: the program knows what the broker refused."""
        if self._refused:
            self._fail("MQTT-4.3.3-5", f"nobody is told that {self._refused[0]} was refused")

    def _is_old(self, flow):
        rules = self._rules
        return flow.life == rules.life and rules.device_ms() >= flow.expires_ms

    def _find_waiting(self, packet_id, is_old):
        flow = self._by_id.get(packet_id)
        if not flow or self._rules.life in (flow.drop_life, flow.done_life):
            # Of several at QoS 0, which have no id, the oldest; else one whose publish() a reset
            # ended, or one that has a new id in a new session and was not sent there so far.
            waiting = [
                item
                for item in self.flows.values()
                if bool(item.qos) == bool(packet_id) and self._may_wait(item)
            ]
            old = [item for item in waiting if is_old and self._is_old(item)]
            flow = next(iter(old + waiting), None)
            if flow and not flow.qos and flow.life != self._rules.life:
                self._doubtful_drops += 1
        if flow is None or flow.drop_life == self._rules.life:
            self._fail("overflow", f"id {packet_id} is given up and does not exist")
        return flow

    def _may_wait(self, flow):
        if flow.is_sent or flow.drop_life == self._rules.life or flow.was_chosen and not flow.qos:
            return False
        return not flow.qos or not flow.is_accepted or not flow.packet_id

    def on_new_session(self):
        """The client knows that the broker has nothing: all in flight is to go out as new."""
        life = self._rules.life
        for flow in self.flows.values():
            if not flow.qos:
                continue  # it goes out once at most, whatever the session
            flow.was_sent |= flow.was_chosen  # for all that the client knows
            flow.was_chosen = False
            if flow.done_life == life or not (flow.is_sent or flow.may_be_sent):
                continue
            self.unrecorded.append((flow, flow.has_pubrec or flow.may_have_pubrec))
            flow.may_be_sent = False
            flow.is_sent = flow.is_released = flow.is_pubrec_new = False
            flow.has_pubrec = flow.may_have_pubrec = False
            flow.link = flow.rel_link = None
            flow.packet_id = 0
        self._in_flight.clear()

    def on_perhaps_new_session(self):
        """Whether it is to go out as new depends on what a reset left."""
        self.on_new_session()
        self._bring_back()

    def _bring_back(self):
        # That the session before is over may be forgotten.
        for flow, had_pubrec in self.unrecorded:
            flow.may_be_sent = True
            flow.may_have_pubrec |= had_pubrec

    def check_expired(self, what):
        """No message that is too old may still wait."""
        if not self._aging:
            return
        life = self._rules.life
        self._aging = [
            flow
            for flow in self._aging
            if not (flow.was_sent or flow.was_chosen) and flow.drop_life < 0 and flow.life == life
        ]
        now = self._rules.device_ms()
        for flow in self._aging:
            if flow.is_accepted and now >= flow.expires_ms + _SLACK_MS:
                if not flow.qos and self._doubtful_drops:
                    self._doubtful_drops -= 1
                    flow.drop_life = life  # it was this one
                    continue
                self._fail("max_age", f"{flow} is too old and {what}")

    def on_online(self):
        for flow in self.flows.values():
            flow.was_online = True

    def on_unrecorded(self):
        """The journal failed: the PUBREC that was read last may have no record, and so count as
        not received."""
        for flow in self.flows.values():
            if flow.is_pubrec_new and flow.pubrec_number == self._pubrecs:
                flow.has_pubrec = flow.is_pubrec_new = False
                flow.may_have_pubrec = True

    def on_reset(self):
        """Only what is durable is still known."""
        self._unpromised.clear()
        self._doubtful_drops = 0
        self._aging.clear()
        self._refused.clear()
        if self._rules.is_forgetful:
            for flow in self.flows.values():
                flow.is_promised = False
            self._in_flight.clear()
            self._by_id.clear()
            return
        for flow in self.flows.values():
            if flow.was_online:
                flow.may_be_sent = True
            if flow.has_pubrec and not flow.is_released:
                flow.has_pubrec = flow.is_pubrec_new = False
                flow.may_have_pubrec = True
        self._bring_back()

    # --- what the client sends ------------------------------------------------------

    def on_publish(self, link, packet):
        level = self._rules.level
        qos, packet_id, topic, payload = p.publish_fields(packet, level)
        if level == 5:
            properties = p.properties_of(packet)
            topic = self._named(link, topic, properties.get("topic_alias"))
        flow = self.flows.get(topic + b"\0" + payload)
        if flow is None or flow.qos != qos or flow.drop_life == self._rules.life:
            text = p.describe(packet, level)
            self._fail("publish", f"PUBLISH of what is no message: {text}")
        self._check_age(flow)
        if level == 5:
            self._check_expiry(flow, properties.get("message_expiry"))
        if not qos:
            self._on_qos0(flow, packet)
            return
        if qos == 1 and self._was_chosen_before_done(flow, link):
            return
        self._check_repetition(flow, link, packet[0] & 8)
        if not packet_id or flow.packet_id not in (0, packet_id):
            self._fail("31-2.4-ID", f"PUBLISH with id {packet_id} of {flow}")
        self._name(flow, packet_id)
        self._check_place(flow, link)
        self.newest_write.append(flow)
        flow.is_in_doubt = False
        flow.is_sent = flow.was_sent = True
        flow.link = link
        flow.done_life = -1
        self._enter(flow)
        under_way = sum(other.link is link for other in self._in_flight)
        if under_way > self.window:
            self._fail("RT-INFLIGHT", f"{flow} is beyond the window of {self.window}")
        if under_way > link.notes.most_sent:
            self._fail("MQTT-3.3.4-7", f"{flow} is beyond {link.notes.most_sent}")

    def _named(self, link, topic, alias):
        # The topic that an alias stands for on this connection.
        notes = link.notes
        if alias is None:
            return topic
        if not 0 < alias <= notes.most_aliases:
            self._fail("MQTT-3.2.2-17", f"topic alias {alias} of {notes.most_aliases}")
        if topic:
            notes.aliases[alias] = topic
        elif alias not in notes.aliases:
            self._fail("MQTT-3.3.2-8", f"topic alias {alias} is not known")
        return topic or notes.aliases[alias]

    def _check_age(self, flow):
        # What never was on its way must not be too old.
        if not (flow.was_sent or flow.was_chosen) and flow.life == self._rules.life:
            if self._rules.device_ms() > flow.expires_ms + _SLACK_MS:
                self._fail("max_age", f"{flow} is sent though it is too old")

    def _check_expiry(self, flow, said_s):
        # A message with an age limit says what is left of it, others say nothing.
        if flow.life != self._rules.life:
            return  # the age is not kept over a reset
        if (said_s is None) != (not flow.age):
            self._fail("max_age", f"{flow} says that it is worth {said_s} s")
        if said_s is not None:
            left_s = float(flow.age)
            if flow.is_accepted:  # hooks inside publish() may have taken their time
                left_s = max((flow.expires_ms - self._rules.device_ms()) / 1000, 0)
            # What waited for room says how much was left when it was chosen.
            most_s = flow.age if flow.was_chosen else left_s
            if not left_s - 2 < said_s < most_s + 2:
                self._fail("max_age", f"{flow} says {said_s} s where {left_s} s are left")

    def _on_qos0(self, flow, packet):
        if packet[0] & 8:
            self._fail("MQTT-4.3.1-1", f"DUP with {flow}")
        if flow.is_sent:
            self._fail("31-4.1-Q0", f"{flow} is sent a second time")
        if flow.number < self._last_qos0:
            self._fail("31-4.3-WINDOW", f"{flow} after message {self._last_qos0}")
        self._last_qos0 = flow.number
        flow.is_sent = flow.was_sent = True

    def _check_repetition(self, flow, link, dup):
        rules = self._rules
        if rules.level == 5 and flow.is_sent and flow.link is link and not flow.is_in_doubt:
            self._fail("MQTT-4.4.0-1", f"{flow} is sent again on one connection")
        if flow.is_released:
            self._fail("MQTT-4.3.3-6", f"PUBLISH after PUBREL of {flow}")
        if flow.has_pubrec and not (flow.was_chosen and link.blocked_at >= 0):
            self._fail("31-4.1-Q2", f"PUBLISH after PUBREC of {flow}")
        if flow.done_life == rules.life:
            self._fail("31-3.4-PUBACK", f"PUBLISH after PUBACK of {flow}")
        if flow.is_sent and not dup and not flow.is_in_doubt:
            self._fail("31-2.1-DUP", f"{flow} is sent again without DUP")
        if dup and not (flow.is_sent or flow.may_be_sent or flow.was_chosen):
            self._fail("31-2.1-DUP", f"{flow} is sent the first time with DUP")

    def _name(self, flow, packet_id):
        flow.packet_id = packet_id
        self._by_id[packet_id] = flow
        self._unanswered.discard(packet_id)
        for other in self._in_flight:
            if other.packet_id == packet_id and other is not flow:
                self._fail("31-2.4-ID", f"id of {other} is used for {flow}")

    def _check_place(self, flow, link):
        # A pass goes through what is in flight from the oldest on and skips nothing;
        # what is sent again after a time-out begins a new pass.
        notes = link.notes
        number = flow.number
        cursor = notes.cursor if number > notes.cursor else -1
        is_blocked = flow.is_sent
        for other in self._in_flight:
            if other.number >= number:
                break
            if not other.has_pubrec:
                if other.number > cursor and not other.may_have_pubrec:
                    self._fail("MQTT-4.6.0-1", f"{flow} goes out before {other}")
                is_blocked = is_blocked or other.qos == 2
            elif not is_blocked and link not in (other.rel_link, other.pubrec_link):
                self._fail("31-4.2-RECONNECT", f"new {flow} before PUBREL of {other}")
        notes.cursor = number

    def _enter(self, flow):
        flights = self._in_flight
        if flow not in flights:
            flights.append(flow)
            if len(flights) > 1 and flights[-2].number > flow.number:
                flights.sort(key=lambda item: item.number)

    def _was_chosen_before_done(self, flow, link):
        # The packet waited for room while its last acknowledgement came.
        is_done = flow.done_life == self._rules.life
        return is_done and 0 <= link.blocked_at <= flow.done_at

    def on_no_room(self, link, packet):
        """The stream took nothing of a packet: the client may take it for sent."""
        if packet[0] & 0xF0 == 0x30:
            _, _, topic, payload = p.publish_fields(packet, self._rules.level)
            if not topic:
                topic = link.notes.aliases.get(p.properties_of(packet).get("topic_alias"), b"")
            flow = self.flows.get(topic + b"\0" + payload)
            if flow:
                flow.was_chosen = True

    def on_write_failed(self):
        """What the newest write was to send may have been sent or not."""
        for flow in self.newest_write:
            flow.is_in_doubt = True

    def on_pubrel(self, link, packet):
        packet_id = p.read_id(packet)
        if packet[0] & 0xF7 != 0x62:
            self._fail("31-3.6-PUBREL", f"first byte {packet[0]:#x}")
        flow = self._find(packet_id) or self._find_done(packet_id)
        if flow is None:
            flow = self._by_id.get(packet_id)
            if flow and self._was_chosen_before_done(flow, link):
                return
            if packet_id not in link.notes.pubrecs | self._unanswered:
                self._fail("31-3.5-PUBREC", f"PUBREL for id {packet_id}: no PUBREC came")
            return
        if self._rules.level == 5 and flow.rel_link is link and not flow.is_in_doubt:
            self._fail("MQTT-4.4.0-1", f"PUBREL of {flow} is sent again on one connection")
        self._check_pubrel(flow, link, packet[0] & 8)
        flow.pubrecs = max(0, flow.pubrecs - 1)
        self.newest_write.append(flow)
        flow.is_in_doubt = False
        flow.has_pubrec = flow.is_released = True
        flow.is_pubrec_new = False
        flow.packet_id = packet_id  # it had none any more if its session seemed to be over
        flow.rel_link = link
        flow.done_life = -1
        self._enter(flow)

    def _check_pubrel(self, flow, link, dup):
        rules = self._rules
        if not (flow.has_pubrec or flow.may_have_pubrec):
            self._fail("31-3.5-PUBREC", f"PUBREL before PUBREC of {flow}")
        if rules.level > 3:
            if dup:
                self._fail("31-2.1-DUP", f"PUBREL of {flow} with DUP at level {rules.level}")
        elif flow.is_released and not dup and not flow.is_in_doubt:
            self._fail("31-2.1-DUP", f"PUBREL of {flow} is sent again without DUP")
        if dup and not flow.is_released and not flow.may_have_pubrec:
            self._fail("31-2.1-DUP", f"PUBREL of {flow} is sent the first time with DUP")
        if rules.level > 3:
            self._check_pubrec_order(flow)
            return
        if not flow.is_pubrec_new and flow.pubrecs and flow.pubrec_link is link:
            return  # its PUBREC came twice, and each may be answered
        number = flow.number
        notes = link.notes
        cursor = notes.rel_cursor if number > notes.rel_cursor else -1
        for other in self._in_flight:
            if other.number >= number:
                break
            if other.qos < 2:
                continue
            if not other.has_pubrec and not other.may_have_pubrec:
                self._fail("31-4.3-STAGE", f"PUBREL of {flow} while {other} awaits PUBREC")
            is_again = other.is_released and other.pubrec_number > flow.pubrec_number
            if (
                other.is_pubrec_new
                and not is_again
                or (not flow.is_pubrec_new and other.number > cursor)
            ):
                self._fail("MQTT-4.6.0-4", f"PUBREL of {flow} before that of {other}")
        notes.rel_cursor = number

    def _check_pubrec_order(self, flow):
        # Level 4 knows no stages: PUBRELs leave in the order of the PUBRECs.
        if not flow.is_pubrec_new:
            return
        for other in self._in_flight:
            if other.is_pubrec_new and other.pubrec_number < flow.pubrec_number:
                self._fail("MQTT-4.6.0-4", f"PUBREL of {flow} before that of {other}")

    def on_control(self, link, packet):
        packet_id = p.read_id(packet)
        kind = packet[0] >> 4
        controls = link.notes.controls
        if not packet_id or self._find(packet_id):
            self._fail("31-2.4-ID", f"{p.NAMES[kind]} with id {packet_id}")
        is_again = self._rules.level == 3 and controls.get(packet_id) == kind
        if bool(packet[0] & 8) != is_again:
            self._fail("31-2.1-DUP", f"{p.NAMES[kind]} {packet_id}: DUP is wrong")
        controls[packet_id] = kind

    # --- what the client reads ------------------------------------------------------

    def on_answer(self, link, packet):
        packet_id = p.read_id(packet)
        kind = packet[0] >> 4
        flow = self._find(packet_id)
        reason = p.reason_of(packet)
        if reason > 0x7F and kind != p.PUBCOMP and flow:
            # MQTT-4.3.3-4, -9: the message is not taken, its flow ends here, its id is free.
            flow.refusal = reason
            flow.done_life = self._rules.life
            flow.done_at = self._rules.now
            self._in_flight.remove(flow)
            self._refused.append(flow)
        elif kind == p.PUBREC:
            if flow is None or flow.qos < 2:
                link.notes.pubrecs.add(packet_id)
            else:
                self._pubrecs += 1
                if not flow.is_pubrec_new:  # else it came again, before its PUBREL
                    flow.pubrec_number = self._pubrecs
                flow.has_pubrec = flow.is_pubrec_new = True
                flow.pubrecs = 1 + (flow.pubrecs if flow.pubrec_link is link else 0)
                flow.pubrec_link = link
        elif flow and (flow.qos == 1 if kind == p.PUBACK else flow.is_released):
            flow.done_life = self._rules.life
            flow.done_at = self._rules.now
            self._in_flight.remove(flow)
            if flow.is_pubrec_new:  # 31-3.5-PUBREC: it is answered all the same
                link.notes.pubrecs.add(packet_id)
                self._unanswered.add(packet_id)
        elif kind == p.PUBCOMP:
            self._unanswered.discard(packet_id)

    def on_control_answer(self, link, packet):
        """SUBACK or UNSUBACK was read: its id is free, unless the request waits for room to go out
        again."""
        if link.blocked_at < 0:
            link.notes.controls.pop(p.read_id(packet), None)

    def _find(self, packet_id):
        for flow in self._in_flight:
            if flow.packet_id == packet_id:
                return flow
        return None

    def _find_done(self, packet_id):
        # That a message was done or given up need not survive a reset, nor that its session was
        # over; what is over in this life stays so.
        flow = self._by_id.get(packet_id)
        if flow is None:
            return None
        ended = max(flow.done_life, flow.drop_life)
        is_open = ended < self._rules.life and (flow.may_have_pubrec or ended >= 0)
        return flow if is_open else None

    # --- what the receivers see -----------------------------------------------------

    def _may_overtake(self):
        # An answer was lost, and the broker passes on what is released first.
        if self.has_denied:
            return True
        return self.is_late and self._rules.level > 3 and self._rules.was_answer_lost()

    def on_delivered(self, key):
        flow = self.flows[key]
        rules = self._rules
        flow.delivered += 1
        if flow.delivered == 1:
            # That it was given up before a reset may be forgotten.
            is_back = 0 <= flow.drop_life < rules.life
            if flow.number < self._first[flow.qos] and not (is_back or self._may_overtake()):
                self._fail("31-4.3-WINDOW", f"{flow} after message {self._first[flow.qos]}")
            self._first[flow.qos] = flow.number
        elif flow.qos != 1 and not rules.sessions_lost:
            self._fail("31-4.1-Q2", f"{flow} is passed on twice")
        if self.is_ordered and flow.number < self._last:
            self._fail("MQTT-4.6-RM1", f"{flow} after message {self._last}")
        self._last = flow.number

    def revived(self):
        """Messages that were done before a reset; that need not have survived it."""
        life = self._rules.life
        return sum(0 <= flow.done_life < life for flow in self.flows.values()) if life else 0

    def check_end(self):
        for flow in self.flows.values():
            if not flow.is_promised or not flow.qos or flow.delivered or flow.drop_life >= 0:
                continue
            if not (flow.qos == 2 and self.is_late and self._rules.secret_losses):
                self._fail(f"31-4.1-Q{flow.qos}", f"{flow} is lost")
