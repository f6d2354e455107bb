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
_WAS_SENT = const(0x04)  # its PUBLISH went out before: DUP
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
    can, over resets.  `window` and `queue` count messages, `held` packet ids.

    `count` messages are here, the first `inflight` of them sent, the first `cursor`
    on this connection; `owed`: how many of these wait for their PUBREL; `is_due`: there
    may be something for `next()`; `control_id` is the packet id of a SUBSCRIBE or
    UNSUBSCRIBE that waits, 0 if none does.
    """

    def __init__(self, store, window, queue, held, level, now):
        n = window + queue
        self.store = store
        self._forget = store.remove
        self.stats = Stats()
        self.held = HeldIds(store, held, now)
        self.window = window
        self.inflight = self.count = self.control_id = 0
        self.is_due = False
        self._queue = queue
        self._slots = n
        self._level = level
        self._ring = list(range(n))
        # By slot.  The ids are a list, which is searched in C.
        self._ids = [0] * n
        self._when = [0] * n  # ticks: last sent, or while queued: expiry
        self._state = bytearray(n)
        self._flags = bytearray(n)
        self._tries = bytearray(n)
        self._head = self.cursor = self.owed = self._aged = self.last_id = 0
        self.free_ids = 0  # how many follow the last one that nothing uses

    # --- recovery -------------------------------------------------------------

    def restore(self, slot, packet_id, qos, has_pubrec, maybe_sent):
        """Take back a message of an earlier life; called oldest first."""
        if maybe_sent and not qos:
            self._forget(slot)  # 31-4.1-Q0: it may have gone out, so never again
            return
        k = self._ring.index(slot)
        n = self.count
        self._ring[k] = self._ring[n]
        self._ring[n] = slot
        self.count = n + 1
        self._ids[slot] = packet_id
        self._state[slot] = _OWE_PUBREL if has_pubrec else qos
        flags = qos | _OLD
        if maybe_sent or has_pubrec:
            # What was done before it may be back too, so it may be beyond the window.
            flags |= _WAS_SENT
            if has_pubrec or n < self.window:
                self.inflight = n + 1
        if has_pubrec:
            flags |= _RELEASED
        self._flags[slot] = flags

    def restore_held(self, packet_id):
        """Take back a received QoS 2 id of an earlier life; called oldest first."""
        self.held.restore(packet_id)

    def restore_last_id(self, packet_id):
        """Go on with packet ids behind this one: the broker may hold older ones."""
        self.last_id = packet_id

    # --- outgoing -------------------------------------------------------------

    def next_id(self):
        """The id of the next message; used up by `add()` only."""
        i = self.last_id + 1 if self.last_id < 65535 else 1
        if self.free_ids <= 0:
            i = self._skip_used(i)
        return i

    def _skip_used(self, i):
        # 31-2.4-ID, MQTT-4.3.2-1, MQTT-4.3.3-1: 1 to 65535, none that is in use.
        # All ids are looked at only after as many as were free in a row are used up.
        while i in self._ids or i == self.control_id:
            i = i + 1 if i < 65535 else 1
        free = 65535
        for used in self._ids:
            if used:
                free = min(free, (used - i) % 65535)
        if self.control_id:
            free = min(free, (self.control_id - i) % 65535)
        self.free_ids = free
        return i

    def take_id(self):
        """Use up an id for SUBSCRIBE or UNSUBSCRIBE."""
        self.control_id = self.last_id = self.next_id()
        self.free_ids -= 1
        return self.control_id

    def has_id(self, packet_id):
        """Is a message with this id not acknowledged yet?"""
        return packet_id in self._ids

    def newest_qos(self):
        """The QoS of the message accepted last, None if there is none."""
        return self._flags[self._slot(self.count - 1)] & _QOS if self.count else None

    def has_room(self, is_online):
        """Is there a place in the queue or, on a connection, in the window?"""
        room = self.window - self.inflight if is_online else 0
        if room < self._queue:
            room = self._queue
        return self.count - self.inflight < room and self.count < self._slots

    def add(self, buf, n, packet_id, qos, is_online, expiry, now, is_sent):
        """Accept the packet `buf[:n]` at the end of the queue -> False: store full.

        `expiry`: ticks when it may be given up if it still waits, or None.
        `is_sent`: nothing precedes it, and it is sent right now.
        """
        i = self._head + self.count
        slot = self._ring[i if i < self._slots else i - self._slots]
        if not self.store.put(slot, packet_id, qos, buf, n, is_online):
            return False
        if packet_id:
            self.last_id = packet_id
            self.free_ids -= 1
        self._ids[slot] = packet_id
        self._state[slot] = qos
        self._tries[slot] = 0
        self.count += 1
        if is_sent:
            self.cursor = self.inflight = self.count
            self.stats.sent += 1
            self._when[slot] = now
            qos |= _WAS_SENT
        else:
            self.is_due = True
            if expiry is not None:
                self._when[slot] = expiry
                self._aged += 1
                qos |= _AGED
        self._flags[slot] = qos
        return True

    def next(self, buf, now):
        """Put the next packet due into `buf` and count it as sent -> its length, or 0.

        Call `store.commit()` once before, so that no packet overtakes its record.
        """
        while True:
            if self.owed:
                n = self._next_pubrel(buf, now)
                if n:
                    return n
            k = self.cursor
            if k == self.inflight and (k == self.count or k >= self.window):
                self.is_due = False
                return 0
            slot = self._slot(k)
            if self._state[slot] == _OWE_PUBREL:
                # 31-3.6, MQTT-4.3.3-6: PUBREL only, never PUBLISH again.
                self.cursor = k + 1
                self.owed += 1
                continue
            n = self.store.get(slot, buf)
            flags = self._flags[slot]
            if flags & _WAS_SENT:
                buf[0] |= DUP  # 31-2.1-DUP
                self.stats.retried += 1
            else:
                self.stats.sent += 1
            if not flags & _QOS:
                self.remove(k)  # 31-4.1-Q0: sent once, no answer awaited
                return n
            if flags & _AGED:
                self._aged -= 1
            self._flags[slot] = flags & ~_AGED | _WAS_SENT
            self._when[slot] = now
            self.cursor = k + 1
            if k == self.inflight:
                self.inflight = k + 1
            return n

    def _next_pubrel(self, buf, now):
        for k in range(self.cursor):
            slot = self._slot(k)
            state = self._state[slot]
            if state == _WAIT_PUBREC and self._level < 4:
                break  # 31-4.3-STAGE: PUBRELs in the order of the PUBLISHes
            if state == _OWE_PUBREL:
                n = write_ack(buf, 0, PUBREL, self._ids[slot])
                if self._flags[slot] & _RELEASED:
                    self.stats.retried += 1
                    if self._level < 4:
                        buf[0] |= DUP
                self._state[slot] = _WAIT_PUBCOMP
                self._flags[slot] |= _RELEASED
                self._when[slot] = now
                self.owed -= 1
                return n
        return 0

    def on_ack(self, kind, packet_id):
        """PUBACK, PUBREC or PUBCOMP (`kind` 4, 5, 7) -> False if it is a stray."""
        k = 0
        slot = self._ring[self._head]
        while k < self.inflight and self._ids[slot] != packet_id:
            k += 1
            slot = self._slot(k)
        state = self._state[slot]
        after = _STRAY if k == self.inflight else _NEXT[kind - 4][state]
        if after == _DONE:
            # 31-3.4-PUBACK, 31-3.7-PUBCOMP; MQTT-4.3.2-3, MQTT-4.3.3-5: id free now
            self.remove(k)
            self.is_due = self.cursor < self.count or self.owed > 0
        elif after == _STRAY:
            self.stats.strays += 1
            return False
        elif state != _OWE_PUBREL:
            if state == _WAIT_PUBREC:
                self._tries[slot] = 0
                self.store.pubrec(slot)
            self._state[slot] = _OWE_PUBREL
            if k < self.cursor:
                self.owed += 1
                self.is_due = True
        return True

    def rewind(self, tries):
        """Send all in flight again, in order: a new connection (`tries` 0) or a
        time-out (1 more try)."""
        self.cursor = self.owed = 0
        self.is_due = True
        for k in range(self.inflight):
            slot = self._slot(k)
            if self._state[slot] == _WAIT_PUBCOMP:
                self._state[slot] = _OWE_PUBREL
            self._tries[slot] = min(self._tries[slot] + 1, _MAX_TRIES) if tries else 0

    def retry_in(self, now, interval_ms, most):
        """Ticks until the oldest message in flight is sent again, `most` at most."""
        if not interval_ms or not 0 < self.inflight == self.cursor:
            return most
        slot = self._slot(0)
        # 31-4.2-RETRY: the time-out doubles with each try of one message.
        return min(most, (interval_ms << self._tries[slot]) - ticks_diff(now, self._when[slot]))

    def touch(self, now):
        """A packet took until now to leave: it is timed out from now on."""
        if self.cursor:
            self._when[self._slot(0)] = now

    # --- giving up --------------------------------------------------------------

    def find_old(self):
        """-> index of a message in flight or from an earlier life, -1 if none.

        Those end with a clean session; what this life accepted and never sent
        is not part of the broker's session and stays queued.
        """
        for k in range(self.count):
            if k < self.inflight or self._flags[self._slot(k)] & _OLD:
                return k
        return -1

    def find_topic(self, topic, buf):
        """-> index of the waiting message on `topic`, -1 if none; uses `buf`."""
        for k in range(self.inflight, self.count):
            self.store.get(self._slot(k), buf)
            if has_topic(buf, topic):
                return k
        return -1

    def find_expired(self, now):
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

    def remove(self, k):
        """The message with index `k` is done or given up -> its packet id."""
        ring = self._ring
        head = self._head
        i = head + k
        if i >= self._slots:
            i -= self._slots
        slot = ring[i]
        packet_id = self._ids[slot]
        if self._flags[slot] & _AGED:
            self._aged -= 1
        if k < self.cursor:
            self.cursor -= 1
            if self._state[slot] == _OWE_PUBREL:
                self.owed -= 1
        if k < self.inflight:
            self.inflight -= 1
        self.count -= 1
        self._ids[slot] = 0
        self._forget(slot)
        if k:
            while k:  # those before it move up by one
                ring[i] = ring[i - 1]
                i -= 1
                k -= 1
            ring[head] = slot
        # Its slot is now the last free one.
        head += 1
        self._head = head if head < self._slots else 0
        return packet_id

    def _slot(self, k):
        i = self._head + k
        return self._ring[i if i < self._slots else i - self._slots]
