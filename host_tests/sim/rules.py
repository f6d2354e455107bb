"""Rules: watches every byte of a run and fails at the first broken promise.

It sees what the client writes and reads, what the broker passes on, what the program
is handed, and resets; `outgoing` and `incoming` judge the two directions.  The ids in
the messages are those of the requirements that the project answers for.
"""

from host_tests.standin import packets as p

from .incoming import Incoming
from .outgoing import Outgoing

_OUT_OF_PLACE = p.disconnect(0x82)
_QOS0 = 0x30  # PUBLISH, the one packet for which nothing has to be recorded


class Violation(BaseException):
    """A broken promise: `rule` is its id, the text says what was seen."""

    def __init__(self, rule, text):
        super().__init__(f"{rule}: {text}")
        self.rule = rule


class Notes:
    """What the rules remember about one connection."""

    def __init__(self, now, keepalive_ms):
        self.keepalive_ms = keepalive_ms
        self.cursor = self.rel_cursor = -1  # newest PUBLISH and PUBREL of this pass
        self.wrote_at = now
        self.has_connect = self.is_online = self.is_clean = False
        self.is_broken = False  # the broker sent what it never may
        self.is_starved = False  # a QoS 2 message found no room
        self.owed = {p.PUBACK: [], p.PUBREC: [], p.PUBCOMP: []}
        self.pubrecs = set()  # PUBRECs for nothing in flight
        # What CONNACK allows at level 5.
        self.most_sent = 65535  # messages above QoS 0 that are not acknowledged
        self.most_bytes = 1 << 28  # of a packet
        self.most_aliases = 0
        self.aliases = {}  # topics by number
        self.controls = {}  # ids of SUBSCRIBE and UNSUBSCRIBE -> kind


class Rules:
    """The watch over one run; `silence` that a client may keep, as a part of the keep alive."""

    def __init__(self, world, outgoing=Outgoing, incoming=Incoming, silence=1.0):
        self._world = world
        self.silence = silence
        self.keepalive_ms = 0
        self.stuck_ms = 10_000  # for which a stream may take nothing: connect_timeout
        self.violation = None
        self.level = 3  # that the client speaks
        self.life = 0  # counts the boots
        self.sessions_lost = 0  # by the broker, for whatever reason
        self.secret_losses = 0  # of these what the client could not know
        self.is_forgetful = False  # a reset takes all, the store is RAM
        self.outgoing = outgoing(self)
        self.incoming = incoming(self)
        self.closers = 0  # calls under way in which the client may close a connection
        self.is_ending = False  # it may have recorded that a clean session begins
        # The session of the last connection; None: whether that is recorded, nobody knows.
        self._was_clean = False
        self._was_clean_before = False  # until it is recorded: of the one before
        self._has_session = False  # there was a connection
        self.has_session_begun = False  # at the broker, since then
        self.delivered = []  # (topic, payload) in order
        self._written = {
            p.PUBLISH: self.outgoing.on_publish,
            p.PUBREL: self.outgoing.on_pubrel,
            p.PUBACK: self.incoming.on_answer,
            p.PUBREC: self.incoming.on_answer,
            p.PUBCOMP: self.incoming.on_answer,
            p.SUBSCRIBE: self.outgoing.on_control,
            p.UNSUBSCRIBE: self.outgoing.on_control,
        }
        self._read = {
            p.CONNACK: self._on_connack,
            p.PUBLISH: self.incoming.on_publish,
            p.PUBREL: self.incoming.on_pubrel,
            p.PUBACK: self.outgoing.on_answer,
            p.PUBREC: self.outgoing.on_answer,
            p.PUBCOMP: self.outgoing.on_answer,
            p.SUBACK: self.outgoing.on_control_answer,
            p.UNSUBACK: self.outgoing.on_control_answer,
            p.AUTH: self._on_auth,
        }

    @property
    def now(self):
        """Milliseconds since the run began."""
        return int(self._world.now)

    def device_ms(self):
        """Milliseconds by the device's clock, which faults may put forward."""
        return int(self._world.clock.device_ms())

    def is_open(self, link):
        return self._world.link is link and not link.is_closed

    def was_answer_lost(self):
        """Did an answer of the broker come late or not at all?"""
        return any(fault.kind in ("lose", "late") for fault in self._world.struck)

    def fail(self, rule, text):
        """The run broke `rule`; it fails by the first one that it broke: the client, which it
        leaves like Ctrl-C, may close its connection for it."""
        violation = Violation(rule, text)
        self._world.note(f"VIOLATION {violation}")
        self.violation = self.violation or violation
        raise self.violation

    def know(self, options):
        self.keepalive_ms = 1000 * options.get("keepalive", 60)
        self.stuck_ms = 1000 * options.get("connect_timeout", 10)
        self.outgoing.is_ordered = options.get("ordered", False)
        self.outgoing.window = 1 if self.outgoing.is_ordered else options.get("max_inflight", 4)
        self.incoming.most_held = options.get("max_awaiting_rel", 65535)
        self.incoming.held_ms = 1000 * options.get("await_rel_timeout", 300)
        self.incoming.buffer_bytes = options.get("buffer_size", 256)

    # --- what a link tells ----------------------------------------------------------

    def on_open(self, link):
        link.notes = Notes(self._world.now, self.keepalive_ms)

    def on_write(self, link, data):
        self._check_silence(link)
        if data:  # else it is the rest of the one before
            self.outgoing.newest_write.clear()
        said = link.said
        said += data
        while True:
            packet = p.take(said)
            if packet is None:
                return
            world = self._world
            if world.trace is not None:
                world.note(f"client > {p.describe(packet, self.level)}")
            kind = packet[0] >> 4
            self._check_connection(link, packet, kind)
            judge = self._written.get(kind)
            if judge:
                if packet[0] & 0xF6 != _QOS0:
                    self._on_recorded()
                judge(link, packet)

    def _check_connection(self, link, packet, kind):
        # May it go out on this connection now?
        if len(packet) > link.notes.most_bytes:
            self.fail("MQTT-3.2.2-15", f"{p.NAMES[kind]} of {len(packet)} bytes")
        if kind == p.CONNECT:
            if link.notes.has_connect:
                self.fail("31-3.1", "a second CONNECT on one connection")
            link.notes.has_connect = True
            self._on_recorded()
            self._on_connect(link, packet)
        elif link.notes.is_broken:
            if packet != _OUT_OF_PLACE:
                self.fail("MQTT-4.13.1-1", f"{p.describe(packet, 5)} behind AUTH of the broker")
        elif not link.notes.is_online:
            self.fail("31-3.2-CONNACK", f"{p.NAMES[kind]} before CONNACK")

    def on_read(self, link, packet):
        world = self._world
        if world.trace is not None:
            world.note(f"client < {p.describe(packet, self.level)}")
        judge = self._read.get(packet[0] >> 4)
        if judge:
            judge(link, packet)

    def on_close(self, link):
        self._check_silence(link)
        if link.to_skip:
            self.outgoing.on_write_failed()
        world = self._world
        world.note(f"client closes connection {link.number}")
        # At level 5 the broker sends no more than there is room for.
        is_starved = link.notes.is_starved and self.level < 5
        is_stuck = link.stuck_ms() >= self.stuck_ms
        if not (self.closers or world.struck or link.is_dropped or is_starved or is_stuck):
            self.fail("connection", "the client closes it, and nothing was wrong")

    def on_poll(self, link):
        """poll() returned, the connection is in use, nothing waits for room."""
        self.incoming.check_answered(link)
        self.outgoing.check_told()
        if link.notes.is_broken:
            self.fail("MQTT-4.13.1-1", "the connection goes on behind AUTH of the broker")

    def _on_connect(self, link, packet):
        hello = p.Connect(packet)
        self.level, link.notes.is_clean = hello.level, hello.is_clean
        if link.notes.is_clean:
            self.on_clean_connect()
        is_to_be_kept = bool(hello.properties.get("session_expiry"))
        if hello.level == 5 and is_to_be_kept == link.notes.is_clean:
            self.fail("MQTT-3.1.2-23", "CONNECT asks for another session than connect() did")

    def _on_connack(self, link, packet):
        # Does the client know that the session is a new one?  At level 3 it does when
        # this one or the one before is a clean one, from level 4 on the broker says so; at
        # level 5 the broker alone decides how long it keeps one.
        if p.reason_of(packet):
            return
        link.notes.is_online = True
        if self.level == 5:
            self._on_terms(link.notes, p.properties_of(packet))
        level = self.level
        is_new = link.notes.is_clean or level > 3 and not packet[2]
        if level < 5:
            is_new = is_new or self._was_clean
        if is_new is None:
            self.outgoing.on_perhaps_new_session()
        if is_new:
            self.outgoing.on_new_session()
            self.incoming.on_new_session()
        elif self._has_session and self.has_session_begun:
            self.secret_losses += 1
            self.incoming.on_session_lost()
        self._was_clean_before = self._was_clean
        self._was_clean = link.notes.is_clean
        self._has_session = True
        self.has_session_begun = False
        self.outgoing.on_online()

    def _on_auth(self, link, packet):
        # The client asks for no exchange, so this one is a fault of the broker's.
        link.notes.is_broken = True

    def _on_terms(self, notes, said):
        notes.most_sent = said.get("receive_maximum", notes.most_sent)
        notes.most_bytes = said.get("maximum_packet_size", notes.most_bytes)
        notes.most_aliases = said.get("topic_alias_maximum", 0)
        notes.keepalive_ms = 1000 * said.get("server_keep_alive", self.keepalive_ms // 1000)

    def _check_silence(self, link):
        # 31-2.2-KA.  A full socket is not the client's silence.
        now = self._world.now
        most_ms = link.notes.keepalive_ms
        if most_ms and link.notes.is_online and not link.was_jammed:
            silence = now - link.notes.wrote_at
            if silence > most_ms * self.silence:
                self.fail("31-2.2-KA", f"nothing sent for {silence} ms")
        link.notes.wrote_at = now

    # --- what else happens ----------------------------------------------------------

    def _on_recorded(self):
        # What goes out follows the record of the session.
        self._was_clean_before = self._was_clean
        self.outgoing.unrecorded.clear()
        self.incoming.unrecorded.clear()

    def on_clean_connect(self):
        """CONNECT leaves, and with it the old session on the client's side; whether it did,
        nobody can tell if the connection or the device dies now."""
        self.outgoing.on_perhaps_new_session()
        self.incoming.on_clean_connect()

    def on_reset(self):
        if self.is_ending:
            self.is_ending = False
            self.on_clean_connect()
        is_old = self.outgoing.unrecorded or self.incoming.unrecorded
        if is_old and not self.is_forgetful:
            self.secret_losses += 1  # it may go on as in the session before
        if self._was_clean_before != self._was_clean:
            self._was_clean = None
        self.outgoing.on_reset()
        self.incoming.on_reset()
        self._on_recorded()
        self.life += 1
        if self.is_forgetful:
            self._was_clean = self._was_clean_before = self._has_session = False

    def on_delivered(self, key, dup):
        topic, _, payload = key.partition(b"\0")
        self.delivered.append((topic, payload))
        self._world.note(f"broker delivers {payload[-24:]!r}" + (" DUP" if dup else ""))
        self.outgoing.on_delivered(key)

    def check_end(self):
        self.outgoing.check_end()
        self.incoming.check_end()
