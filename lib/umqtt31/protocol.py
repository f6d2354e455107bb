"""The protocol without I/O, sleep or clock: bytes in, bytes out, ticks in.

A front opens a stream, gives `begin()` the settings of the connection, and then turns
three handles: what it reads goes to `received()`, what `session.next()` shows it writes,
and `tick()` learns the time.  When `received()` says MESSAGE, the message stands in
`message` until the next call; `acknowledge()` it when it is handed over.  An error is a
return value, its code; after one the front closes its stream and calls `lost()`.
MQTT 3.1 §2.2 (keep alive), §3, §4; 3.1.1.
"""

from time import ticks_add, ticks_diff

from micropython import const

from .framing import Framing
from .message import Message

_OPENING = const(1)  # CONNECT is on its way
_ONLINE = const(2)

_PACKET_PUBLISH = const(0x30)
_PACKET_PUBACK = const(0x40)
_PACKET_PUBREC = const(0x50)
_PACKET_PUBCOMP = const(0x70)

_TIMEOUT = const(257)
_PROTOCOL = const(259)
_AWAITING_REL = const(264)

_WAKE_MS = const(500)
# Set in the ticks from now to a moment that is past, or more than 511 ms away.
_NOT_SOON = const(0x3FFFFE00)
_MAX_TRIES = const(6)
_DAY_MS = const(86400000)

# What received() says, beside 0 (more has to come) and codes of errors from 256 on or,
# from the broker's CONNACK, of REFUSED and more.
HANDLED = 1
MESSAGE = 2
OVERSIZE = 3
ACCEPTED = 4
REFUSED = 512

_PINGREQ = b"\xc0\x00"

# What a broker may send, by packet type: 0 nothing of it, 1 any length, else the
# length of its body plus 2.
#             -  CON ACK PUB  A   REC REL COM SUB ACK UNS ACK PING RSP DIS -
_LENGTHS = b"\x00\x00\x00\x01\x04\x04\x04\x04\x00\x01\x00\x04\x00\x02\x00\x00"


class Protocol:
    """One client's side of MQTT over one connection after another.

    `framing` says what to read next, `session` what to write.  `state`: 0 closed, 1
    opening, 2 the broker accepted.  `granted`: what the last SUBACK said.
    `is_present`: what the last CONNACK said of the session.  `now`: ticks, set by the
    front when it has looked at the clock for publish(), else by `tick()`.
    """

    def __init__(self, session, size, level, filters):
        self.session = session
        self.framing = Framing(size)
        self.message = Message(self.framing.rx)
        self.level = level
        self.filters = []  # what the broker is to know: a SUBSCRIBE for each filter
        self.granted = bytearray(filters)
        self.state = self._tries = self._stuck_at = 0
        self.is_present = self.is_clean = self.was_clean = self.is_starved = False
        self.is_pinging = self._was_online = False
        # Of the filters, the broker knows so many; so many were sent to it.
        self._known = self._asked = 0
        self.now = self._tx_at = self._rx_at = self._ping_at = self._moved_at = self._wake_at = 0

    def set_times(self, keepalive, retry, held, timeout):
        """Seconds: keep alive; until all is sent again, 0 for never; that a received
        QoS 2 id waits for its PUBREL; that the stream may take nothing."""
        self.keepalive_ms = keepalive * 1000
        self.retry_ms = retry * 1000
        self.held_ms = held * 1000
        self.timeout_ms = timeout * 1000

    def use(self, rx):
        """Receive into `rx` from now on, as `Framing.use()`."""
        self.framing.use(rx)
        self.message.use(rx)

    # --- connections ---------------------------------------------------------------

    def begin(self, is_clean, connect, now):
        """A stream is open, on which the packet `connect` goes first."""
        self.framing.reset()
        self.is_clean = is_clean
        self.session.write_first(connect)
        self.state = _OPENING
        self.now = self._tx_at = self._rx_at = now

    def lost(self):
        """The stream is closed."""
        self.state = 0
        self.session.disconnected()

    def _accept(self, first):
        # 31-3.2-CONNACK, 31-2.2-RC
        framing = self.framing
        if first >> 4 != 2 or framing.length != 2:
            return _PROTOCOL
        if framing.field & 255:
            return REFUSED + (framing.field & 255)
        session = self.session
        self.is_present = False
        if self.level > 3:
            self.is_present = framing.field == 0x100
            if framing.field > 0x100 or self.is_present and self.is_clean:
                return _PROTOCOL
        # A clean session ends with its connection, so what follows one is new, too.
        if self.is_clean or self.was_clean or self.level > 3 and not self.is_present:
            session.renew(self.is_clean)
        self.was_clean = self.is_clean
        session.connected()
        # At level 3 the broker cannot say that it kept the filters.
        if not self.is_present:
            self._known = 0
        self._asked = self._known
        self.is_starved = self.is_pinging = False
        self._tries = 0
        self.state = _ONLINE
        if self._was_online:
            session.stats.reconnects += 1
        self._was_online = True
        self._ask_next()
        return ACCEPTED

    # --- what comes ------------------------------------------------------------------

    def received(self, n):
        """`n` bytes were read to `framing.into` -> 0, HANDLED, MESSAGE, OVERSIZE,
        ACCEPTED, or the code of an error."""
        framing = self.framing
        head = framing.head
        if n == 4 and head[0] == _PACKET_PUBACK and head[1] == 2 and framing.into is head:
            # The fast way through the rest, for what most often comes.
            if self.state == _ONLINE:
                self.session.on_ack(_PACKET_PUBACK, head[2] << 8 | head[3])
                return HANDLED
        n = framing.take(n)
        if not n:
            return 0
        if n & 0xF0 == _PACKET_PUBLISH and not framing.have and self.state == _ONLINE:
            return self._on_publish(n)
        event = 0
        while n > 15:
            if self.state != _ONLINE:
                return self._accept(n)
            event = self._handle(n)
            if event != HANDLED or not framing.have:
                return event
            # It was so short that the next one may be here already.
            n = framing.take(0)
        return _PROTOCOL if n else event

    def _handle(self, first):
        framing = self.framing
        kind = first >> 4
        length = _LENGTHS[kind]
        if length != 1 and length != framing.length + 2:
            return _PROTOCOL
        if kind == 3:
            return self._on_publish(first)
        if kind == 13:
            self.is_pinging = False
        elif kind > 7:
            return self._on_request_ack(first)
        elif kind == 6:
            return self._on_pubrel(framing.field)
        else:
            self.session.on_ack(first, framing.field)
        return HANDLED

    def _on_publish(self, first):
        framing = self.framing
        message = self.message
        if framing.is_oversize:
            if not message.skip(first, framing):
                return _PROTOCOL
        elif not message.read(first, framing.field, framing.length):
            return _PROTOCOL
        if first & 4 and not self._is_new(message.packet_id):
            return HANDLED
        if framing.is_oversize:
            self.session.stats.oversize += 1
            return OVERSIZE
        self.session.stats.received += 1
        return MESSAGE

    def _is_new(self, packet_id):
        # Is a QoS 2 message to be handed over?  Else it is answered here, or not taken.
        session = self.session
        if not (session.held.count or self.is_starved):
            return True
        if session.held.find(packet_id) >= 0:  # MQTT-4.3.3-10
            session.stats.duplicates += 1
            session.answer(_PACKET_PUBREC, packet_id)
            return False
        if self.is_starved or not session.held.has_room(packet_id):
            # RT-AWAITREL: not taken, so the broker has to send it again, and none
            # after it, or it would come out of its order.
            self.is_starved = True
            self._wake_at = ticks_add(self.now, -1)
            session.stats.refused += 1
            return False
        return True

    def acknowledge(self, qos, packet_id):
        """A message was handed over: from now on it is ours (MQTT-4.3.2-4, MQTT-4.3.3-8)."""
        session = self.session
        if qos == 2:
            session.store.hold(packet_id)
            session.held.add(packet_id, self.now)
        session.answer(_PACKET_PUBACK if qos == 1 else _PACKET_PUBREC, packet_id)

    def _on_pubrel(self, packet_id):
        session = self.session
        if not session.held.remove(packet_id):
            return _AWAITING_REL
        session.answer(_PACKET_PUBCOMP, packet_id)  # MQTT-4.3.3-11: known or not
        return HANDLED

    # --- subscriptions -----------------------------------------------------------------

    def _ask_next(self):
        # Filters that the broker may not know are sent, one by one.
        if self._asked < len(self.filters):
            self._asked += 1
            self.session.ask(self.filters[self._asked - 1])

    def is_asking(self):
        """Does a SUBSCRIBE or UNSUBSCRIBE wait, for its turn or its answer?"""
        return self.session.request is not None

    def ask(self, request, filters, known):
        """Send the request (first byte, filters, their QoS); from now on `filters` are to
        be known to the broker, as the first `known` of them are."""
        self.filters = filters
        self._known = known
        self._asked = len(filters)
        self.session.ask(request)

    def forget(self, names):
        """The broker refused these filters."""
        self.filters = [one for one in self.filters if one[1][0] not in names]
        self._known = self._asked = len(self.filters)

    def _on_request_ack(self, first):
        # What answers no request of this connection is stray.
        framing = self.framing
        request = self.session.on_request_ack(framing.field)
        if request:
            levels = request[2]
            if (first ^ request[0]) & 0xF0 != 0x10 or framing.length - 2 != len(levels):
                return _PROTOCOL
            for k in range(len(levels)):
                self.granted[k] = framing.rx[k]  # 31-3.9-SUBACK: in order
            self._known = self._asked
            self._ask_next()
        return HANDLED

    # --- time ---------------------------------------------------------------------------

    def tick(self, now, handled):
        """It is `now`, and `handled` packets came since the last call -> 0, or 1 if there
        is something to write or to give up, or the code of an error."""
        session = self.session
        if session.news:
            if session.news > 1:
                self._moved_at = self.now
                self._tries = 0
            self._tx_at = self.now
            self._stuck_at = session.news = 0
        self.now = now
        if handled:
            self._rx_at = now
        if session.at != session.end:
            session.is_due = True
            if self._is_stuck(now):
                return _TIMEOUT
        if (self._wake_at - now) & _NOT_SOON:
            return self._check_timers(now)
        return 1 if session.is_due else 0

    def _is_stuck(self, now):
        # A packet waits for room in the stream: does it wait for too long?
        session = self.session
        if session.at != self._stuck_at:
            self._stuck_at = session.at
            self._tx_at = now  # slow, but it goes on
        session.store.commit()
        self._moved_at = now  # 31-4.2-RETRY: timed from when it is out
        return ticks_diff(now, self._tx_at) >= self.timeout_ms

    def _check_timers(self, now):
        session = self.session
        self._forget_held(now)
        if self.is_starved and not session.held.count and session.can_close():
            return _AWAITING_REL  # RT-AWAITREL: what was not taken comes again only then
        if self._retry_in(now, 1) <= 0:
            session.rewind()
            self._moved_at = now
            if self._tries < _MAX_TRIES:
                self._tries += 1
        if session.at == session.end and self._ping_in(now, 1) <= 0:
            if self.is_pinging:  # 31-2.2-KATIMEOUT
                return _TIMEOUT
            self.ping()
        # No interval is under a second, so none that begins later is missed.
        most = 0 if self.is_starved else self._due_in(now, _WAKE_MS)
        self._wake_at = ticks_add(now, most - 1 if most > 0 else -1)
        return 1

    def _forget_held(self, now):
        held = self.session.held
        while held.count and held.expires_in(now, self.held_ms) <= 0:  # RT-AWAITREL-T
            held.expire()

    def drowse(self, now):
        """It is `now`, and there is no connection."""
        self.now = now
        self._forget_held(now)

    def due_in(self, now):
        """Ticks until `tick()` has work; what arrives meanwhile waits.  At most a day."""
        session = self.session
        if session.at != session.end or session.is_due:
            return 0
        self.tick(self.now, 0)  # what was sent since then counts
        now = self._due_in(now, _DAY_MS)
        return now if now > 0 else 0

    def _due_in(self, now, most):
        most = self._retry_in(now, self._ping_in(now, most))
        held = self.session.held
        if held.count:
            most = min(most, held.expires_in(now, self.held_ms))
        return self.session.expires_in(now, most)

    def _retry_in(self, now, most):
        # 31-4.2-RETRY: the time-out doubles with each try that brings nothing.
        if self.retry_ms and self.session.is_waiting():
            now = (self.retry_ms << self._tries) - ticks_diff(now, self._moved_at)
            if now < most:
                return now
        return most

    def _ping_in(self, now, most):
        # Ticks until PINGREQ is due or, after one, its answer is overdue.
        if not self.keepalive_ms:
            return most
        if self.is_pinging:
            now = self.keepalive_ms - ticks_diff(now, self._ping_at)
        else:
            # Silence counts in both directions: a link that only sends may be dead.
            now = self.keepalive_ms * 3 // 4 - max(
                ticks_diff(now, self._tx_at), ticks_diff(now, self._rx_at)
            )
        return now if now < most else most

    def ping(self):
        """Have a PINGREQ sent; nothing else may wait to be written."""
        if not self.is_pinging:
            self._ping_at = self.now  # MQTT: a later one moves no deadline
        self.is_pinging = True
        self.session.stats.pings += 1
        self.session.write_first(_PINGREQ)
