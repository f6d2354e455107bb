"""Which messages are in flight, what is due next, and in which order.

Theory of operation.  Outgoing messages stand in one ring, oldest first:

    head                cursor            inflight               count
     | sent, no answer    | to send again   | waiting (the queue)  |

A message enters at the end and leaves when it is acknowledged.  Only the first
`inflight` have been sent; they are at most the window.  On a new connection, and
when the oldest one got no answer in time, the cursor goes back to the head: all
in flight are sent again in their order, and nothing new before them.  So one
number is all that redelivery needs.  The ring holds slot numbers, those behind
`count` being the free slots; a slot is a place in the store and in the arrays.

No I/O and no clock: ticks and the store are handed in.
MQTT 3.1 §4; MQTT 5 §4.3 and §4.6.
"""

from array import array
from time import ticks_diff

from micropython import const

from .held import HeldIds
from .packet import DUP, PUBREL, has_topic, write_ack

# What is awaited; the queue awaits its first PUBLISH.
_WAIT_PUBACK = const(1)
_WAIT_PUBREC = const(2)
_OWE_PUBREL = const(3)
_WAIT_PUBCOMP = const(4)

_STRAY = const(9)
_DONE = const(0)

#        state:  -  WAIT_PUBACK  WAIT_PUBREC  OWE_PUBREL  WAIT_PUBCOMP
# PUBACK         .     done          .            .            .
# PUBREC         .       .          OWE          OWE          OWE
# PUBCOMP        .       .           .            .           done
# By the packet type, 4 to 7; a stray packet changes nothing.
_NEXT = (
    b"\x09\x00\x09\x09\x09",
    b"\x09\x09\x03\x03\x03",
    b"",
    b"\x09\x09\x09\x09\x00",
)

_QOS = const(0x03)
_SENT = const(0x04)  # its PUBLISH went out before: DUP
_RELEASED = const(0x08)  # so did its PUBREL
_OLD = const(0x10)  # from before this clean session
_AGED = const(0x20)  # may be given up when `when` comes, while it waits

_MAX_TRIES = const(6)


class Stats:
    """Counters since the client was made; also `stats["sent"]`."""

    def __init__(self):
        self.sent = 0  # messages sent for the first time
        self.received = 0  # messages handed over
        self.retried = 0  # PUBLISH and PUBREL sent again
        self.duplicates = 0  # QoS 2 repetitions kept from the handler
        self.strays = 0  # acknowledgements of nothing in flight
        self.dropped = 0  # messages given up, each told to on_drop
        self.oversize = 0  # received messages larger than the buffer
        self.refused = 0  # QoS 2 messages beyond max_awaiting_rel
        self.reconnects = 0
        self.pings = 0

    def __getitem__(self, name):
        return getattr(self, name)


class Session:
    """The state of one client's session, over connections and, with a store that
    can, over resets.  `window` and `queue` count messages, `held` packet ids."""

    def __init__(self, store, window, queue, held, level, now):
        n = window + queue
        self.store = store
        self.stats = Stats()
        self.window = window
        self.inflight = self.count = 0
        self.control_id = 0  # of the SUBSCRIBE or UNSUBSCRIBE that waits
        self._queue = queue
        self._slots = n
        self._level = level
        self._ids = [0] * n
        self._ring = array("H", range(n))
        self._state = bytearray(n)
        self._flags = bytearray(n)
        self._tries = bytearray(n)
        self._when = array("l", self._ids)  # last sent, or while queued: expiry
        self._head = self._cursor = self._owed = self._aged = 0
        self._last_id = 0
        self.held = HeldIds(store, held, now)

    # --- recovery -------------------------------------------------------------

    def restore(self, slot, packet_id, qos, has_pubrec, maybe_sent):
        """Take back a message of an earlier life; called oldest first."""
        k = self.count
        while self._ring[k] != slot:
            k += 1
        self._ring[k] = self._ring[self.count]
        self._ring[self.count] = slot
        self.count += 1
        self._ids[slot] = packet_id
        self._flags[slot] = qos | _OLD
        self._state[slot] = qos
        if has_pubrec:
            self._state[slot] = _OWE_PUBREL
        # In flight were the first that could have been sent; the rest waits.
        if has_pubrec or maybe_sent and qos and self.count <= self.window:
            self.inflight = self.count
            self._flags[slot] |= _SENT | (_RELEASED if has_pubrec else 0)

    def restore_held(self, packet_id):
        """Take back a received QoS 2 id of an earlier life; called oldest first."""
        self.held.restore(packet_id)

    def restore_last_id(self, packet_id):
        """Go on with packet ids behind this one: the broker may hold older ones."""
        self._last_id = packet_id

    def oldest_before(self):
        """-> index of a message in flight or from an earlier life, -1 if none.

        Those end with a clean session; what this life accepted and never sent
        is not part of the broker's session and stays queued.
        """
        for k in range(self.count):
            if k < self.inflight or self._flags[self._slot(k)] & _OLD:
                return k
        return -1

    def forget_held(self):
        """The broker starts a new session: its packet ids begin anew."""
        self.held.clear()
        if not self.count:
            self.store.clear()

    def newest_qos(self, default):
        """The QoS of the message accepted last, `default` if there is none."""
        return self._flags[self._slot(self.count - 1)] & _QOS if self.count else default

    # --- outgoing -------------------------------------------------------------

    def next_id(self):
        """The id of the next message; used up by `add()` only."""
        # 31-2.4-ID, MQTT-4.3.2-1, MQTT-4.3.3-1: 1 to 65535, none that is in use.
        i = self._last_id
        while True:
            i = i + 1 if i < 65535 else 1
            if i not in self._ids and i != self.control_id:
                return i

    def has_id(self, packet_id):
        """Is a message with this id not acknowledged yet?"""
        return packet_id in self._ids

    def take_id(self):
        """Use up an id for SUBSCRIBE or UNSUBSCRIBE."""
        self.control_id = self._last_id = self.next_id()
        return self.control_id

    def has_room(self, is_online):
        """Is there a place in the queue or, on a connection, in the window?"""
        room = self._queue
        if is_online:
            room = max(room, self.window - self.inflight)
        return self.count - self.inflight < room and self.count < self._slots

    def add(self, buf, n, packet_id, qos, maybe_sent):
        """Accept the packet `buf[:n]` at the end of the queue -> False: store full."""
        slot = self._slot(self.count)
        if not self.store.put(slot, packet_id, qos, buf, n, maybe_sent):
            return False
        if packet_id:
            self._last_id = packet_id
        self._ids[slot] = packet_id
        self._flags[slot] = qos
        self._state[slot] = qos
        self._tries[slot] = 0
        self.count += 1
        return True

    def limit_age(self, expiry):
        """Let the newest message be given up at the ticks `expiry` if still queued."""
        slot = self._slot(self.count - 1)
        self._flags[slot] |= _AGED
        self._when[slot] = expiry
        self._aged += 1

    def can_send_new(self):
        """Would the message added next be sent at once?"""
        return self._cursor == self.count < self.window and not self._owed

    def admit(self, now):
        """The newest message, which `can_send_new()` let through, is being sent."""
        slot = self._slot(self._cursor)
        self._flags[slot] |= _SENT
        self._when[slot] = now
        self._cursor = self.inflight = self.count
        self.stats.sent += 1

    def has_work(self):
        """Is there anything that `next()` would send?"""
        return bool(self._owed) or self._cursor < min(self.count, max(self.inflight, self.window))

    def next(self, buf, now):
        """Put the next packet due into `buf` and count it as sent -> its length, or 0.

        Call `store.commit()` once before, so that no packet overtakes its record.
        """
        while True:
            if self._owed:
                n = self._next_pubrel(buf, now)
                if n:
                    return n
            k = self._cursor
            if k == self.inflight and (k == self.count or k >= self.window):
                return 0
            slot = self._slot(k)
            if self._state[slot] == _OWE_PUBREL:
                # 31-3.6, MQTT-4.3.3-6: PUBREL only, never PUBLISH again.
                self._cursor = k + 1
                self._owed += 1
                continue
            return self._next_publish(buf, k, slot, now)

    def _next_publish(self, buf, k, slot, now):
        n = self.store.get(slot, buf)
        flags = self._flags[slot]
        if not flags & _QOS:
            self.stats.sent += 1
            self._remove(k)  # 31-4.1-Q0: sent once, no answer awaited
            return n
        if flags & _AGED:
            self._aged -= 1  # MQTT-4.3.3-7: no expiry once it has been sent
        if flags & _SENT:
            buf[0] |= DUP  # 31-2.1-DUP
            self.stats.retried += 1
        else:
            self.stats.sent += 1
        self._flags[slot] = flags & ~_AGED | _SENT
        self._when[slot] = now
        self._cursor = k + 1
        if k == self.inflight:
            self.inflight = k + 1
        return n

    def _next_pubrel(self, buf, now):
        for k in range(self._cursor):
            slot = self._slot(k)
            state = self._state[slot]
            if state == _WAIT_PUBREC and self._level < 4:
                return 0  # 31-4.3-STAGE: PUBRELs in the order of the PUBLISHes
            if state == _OWE_PUBREL:
                flags = self._flags[slot]
                self._state[slot] = _WAIT_PUBCOMP
                self._flags[slot] = flags | _RELEASED
                self._when[slot] = now
                self._owed -= 1
                n = write_ack(buf, 0, PUBREL, self._ids[slot])
                if flags & _RELEASED:
                    self.stats.retried += 1
                    if self._level < 4:
                        buf[0] |= DUP
                return n
        return 0

    def on_ack(self, kind, packet_id):
        """PUBACK, PUBREC or PUBCOMP (`kind` 4, 5, 7) -> False if it is a stray."""
        k = self._find(packet_id)
        state = _STRAY
        if k >= 0:
            slot = self._slot(k)
            state = _NEXT[kind - 4][self._state[slot]]
        if state == _STRAY:
            self.stats.strays += 1
            return False
        if state == _DONE:
            # 31-3.4-PUBACK, 31-3.7-PUBCOMP; MQTT-4.3.2-3, MQTT-4.3.3-5: id free now
            self._remove(k)
        elif self._state[slot] != _OWE_PUBREL:
            if self._state[slot] == _WAIT_PUBREC:
                self._tries[slot] = 0
                self.store.pubrec(slot)
            self._state[slot] = _OWE_PUBREL
            if k < self._cursor:
                self._owed += 1
        return True

    def rewind(self, tries):
        """Send all in flight again, in order: a new connection (`tries` 0) or a
        time-out (1 more try)."""
        self._cursor = self._owed = 0
        for k in range(self.inflight):
            slot = self._slot(k)
            if self._state[slot] == _WAIT_PUBCOMP:
                self._state[slot] = _OWE_PUBREL
            self._tries[slot] = min(self._tries[slot] + 1, _MAX_TRIES) if tries else 0

    def retry_in(self, now, interval_ms):
        """Ticks until the oldest message in flight is sent again; <= 0: now."""
        slot = self._slot(0)
        # 31-4.2-RETRY: the time-out doubles with each try of one message.
        return (interval_ms << self._tries[slot]) - ticks_diff(now, self._when[slot])

    def is_waiting(self):
        """Is a message in flight, and all of them sent on this connection?"""
        return 0 < self.inflight == self._cursor

    def touch(self, now):
        """A packet took until now to leave: it is timed out from now on."""
        if self._cursor:
            self._when[self._slot(self._cursor - 1)] = now
            self._when[self._slot(0)] = now

    # --- giving up what waits --------------------------------------------------

    def oldest_queued(self):
        """-> index of the message that waits longest, -1 if none does."""
        return self.inflight if self.inflight < self.count else -1

    def find_topic(self, topic, buf):
        """-> index of the waiting message on `topic`, -1 if none; uses `buf`."""
        for k in range(self.inflight, self.count):
            self.get(k, buf)
            if has_topic(buf, topic):
                return k
        return -1

    def expired(self, now):
        """-> index of a waiting message that is too old, -1 if there is none."""
        if self._aged:
            for k in range(self.inflight, self.count):
                slot = self._slot(k)
                if self._flags[slot] & _AGED and ticks_diff(now, self._when[slot]) >= 0:
                    return k
        return -1

    def expires_in(self, now, most):
        """Ticks until the first waiting message is too old, `most` at most."""
        if self._aged:
            for k in range(self.inflight, self.count):
                slot = self._slot(k)
                if self._flags[slot] & _AGED:
                    most = min(most, ticks_diff(self._when[slot], now))
        return most

    def get(self, k, buf):
        """Read the packet of the message with index `k` into `buf` -> its length."""
        return self.store.get(self._slot(k), buf)

    def drop(self, k):
        """Give up the message with index `k`."""
        self.stats.dropped += 1
        self._remove(k)

    # --- the ring ---------------------------------------------------------------

    def _slot(self, k):
        i = self._head + k
        return self._ring[i if i < self._slots else i - self._slots]

    def _find(self, packet_id):
        for k in range(self.inflight):
            if self._ids[self._slot(k)] == packet_id:
                return k
        return -1

    def _remove(self, k):
        slot = self._slot(k)
        if self._flags[slot] & _AGED:
            self._aged -= 1
        if self._state[slot] == _OWE_PUBREL and k < self._cursor:
            self._owed -= 1
        self._ids[slot] = 0
        self.store.remove(slot)
        self.count -= 1
        if k < self.inflight:
            self.inflight -= 1
        if k < self._cursor:
            self._cursor -= 1
        # Those before it move up by one; its slot becomes the last free one.
        i = self._head + k
        while k:
            if i >= self._slots:
                i -= self._slots
            self._ring[i] = self._ring[i - 1]
            i -= 1
            k -= 1
        self._ring[self._head] = slot
        self._head += 1
        if self._head == self._slots:
            self._head = 0
