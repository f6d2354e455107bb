"""Which messages are in flight, what is due next, and in which order.

Theory of operation.  Outgoing messages stand in one ring, oldest first:

    head                      |   again        |   queued       | count
     | sent, no answer        | to send again  | never sent     |

A message enters at the end and leaves when it is acknowledged.  Those before the
last `queued` are in flight; they are at most the window.  On a new connection, and
when the oldest one got no answer in time, all in flight are to be sent again, in
their order, and nothing new before them.  So one number is all that redelivery
needs, and while nothing waits a message comes and goes by `count` alone.  `order`
holds slot numbers, those behind `count` being the free slots; a slot is a place in
the store and in the arrays.

Received QoS 2 ids wait in `held` for their PUBREL, oldest first.  While an id is
held, a PUBLISH with it is a repetition, whatever its DUP flag says.

No I/O and no clock: ticks and the store are handed in.
MQTT 3.1 §4; MQTT 5 §4.3 and §4.6.
"""

from time import ticks_diff

from micropython import const

from .packet import write_ack

_DUP = const(0x08)
_PACKET_PUBREL = const(0x62)  # 31-3.6-PUBREL: carries the QoS bits 01

# What is awaited, in a message's state; 0 at QoS 0.  The queue awaits its first PUBLISH.
_WAITS = const(7)
_WAIT_PUBACK = const(1)
_WAIT_PUBREC = const(2)
_OWE_PUBREL = const(3)
_WAIT_PUBCOMP = const(4)
# Flags above it.
_WAS_SENT = const(0x08)  # its PUBLISH went out before: DUP
_RELEASED = const(0x10)  # so did its PUBREL
_OLD = const(0x20)  # from before this clean session
_AGED = const(0x40)  # may be given up when `when` comes, while it waits

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

    `count` messages are here; the last `queued` of them were never sent, and `again`
    before these not on this connection; `owed`: how many of the others wait for their
    PUBREL; `is_due`: there may be something for `next()`; `direct`: how many messages
    there may be at most so that one may be sent before a `commit()`; `ids`: packet
    ids by slot, 0 for none; `control_id`: that of a SUBSCRIBE or UNSUBSCRIBE that
    waits; `id_end`: from `last_id` on to here, all ids are free; `held`: the first
    `held_count` are the received QoS 2 ids that wait for PUBREL; `is_starved`: one
    found no room.
    """

    def __init__(self, store, window, queue, held, level, now):
        n = window + queue
        self.store = store
        self.stats = Stats()
        self.window = window
        self.direct = 0 if store.is_deferred else window
        self.buffers = self.used = None  # those of the store, if it has any
        self.queue = queue
        self.level = level
        self.order = list(range(n))
        # By slot.  The ids are a list, which is searched in C.
        self.ids = [0] * n
        self.when = [0] * n  # ticks: last sent, or while queued: expiry
        self.state = bytearray(n)
        self.count = self.queued = self.again = self.owed = self._aged = 0
        self.control_id = self.last_id = self.id_end = 0
        self._tries = self._tried_id = 0  # how often the oldest timed out; which one that was
        self.expired = 0  # index of a message that is too old, see expires_in()
        self.is_due = self.is_starved = False
        self.held = [0] * held
        self._held_at = [now] * held
        # Both 0 to 86400000, set by the client: when to send again (0: never), and how
        # long a received id may wait.
        self.retry_ms = self.held_ms = 0
        self.held_count = 0

    # --- outgoing -------------------------------------------------------------

    def next_id(self):
        """The id of the next message; used up by setting `last_id`."""
        # 31-2.4-ID, MQTT-4.3.2-1, MQTT-4.3.3-1: 1 to 65535, none that is in use.
        # All ids are looked at only after those free in a row are used up.
        i = self.last_id % 65535 + 1
        while i in self.ids or i == self.control_id:
            i = i % 65535 + 1
        end = 65536
        for used in self.ids:
            if i < used < end:
                end = used
        self.id_end = self.control_id if i < self.control_id < end else end
        return i

    def add(self, buf, n, packet_id, qos, is_online, when):
        """Accept the packet `buf[:n]` at the end of the queue -> False: store full.

        `when`: ticks when it may be given up if it still waits, or None.
        """
        slot = self.order[self.count]
        if not self.store.put(slot, packet_id, qos, buf, n, is_online):
            return False
        if packet_id:
            self.last_id = packet_id
        self.ids[slot] = packet_id
        self.count += 1
        self.queued += 1
        self.is_due = True
        if when is not None:
            self.when[slot] = when
            self._aged += 1
            qos |= _AGED
        self.state[slot] = qos
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
            again = self.again
            k = self.count - self.queued - again
            if not again and (not self.queued or k >= self.window):
                self.is_due = False
                return 0
            slot = self.order[k]
            state = self.state[slot]
            if state & _WAITS == _OWE_PUBREL:
                # 31-3.6, MQTT-4.3.3-6: PUBREL only, never PUBLISH again.
                self.again = again - 1
                self.owed += 1
                continue
            n = self.store.get(slot, buf)
            if state & _WAS_SENT:
                buf[0] |= _DUP  # 31-2.1-DUP
                self.stats.retried += 1
            else:
                self.stats.sent += 1
            if not state & _WAITS:
                self.remove(k)  # 31-4.1-Q0: sent once, no answer awaited
                return n
            if again:
                self.again = again - 1
            else:
                self.queued -= 1
            if state & _AGED:
                self._aged -= 1
            self.state[slot] = state & ~_AGED | _WAS_SENT
            self.when[slot] = now
            return n

    def _next_pubrel(self, buf, now):
        states = self.state
        for k in range(self.count - self.queued - self.again):
            slot = self.order[k]
            state = states[slot]
            if state & _WAITS == _WAIT_PUBREC and self.level < 4:
                break  # 31-4.3-STAGE: PUBRELs in the order of the PUBLISHes
            if state & _WAITS == _OWE_PUBREL:
                n = write_ack(buf, 0, _PACKET_PUBREL, self.ids[slot])
                if state & _RELEASED:
                    self.stats.retried += 1
                    if self.level < 4:
                        buf[0] |= _DUP
                states[slot] = state & ~_WAITS | _WAIT_PUBCOMP | _RELEASED
                self.when[slot] = now
                self.owed -= 1
                return n
        return 0

    def on_ack(self, first, packet_id):
        """PUBACK, PUBREC or PUBCOMP by its first byte -> False if it is a stray."""
        ids = self.ids
        order = self.order
        states = self.state
        k = 0
        for slot in order:
            if ids[slot] == packet_id:
                break
            k += 1
        waits = states[slot] & _WAITS
        after = _NEXT[(first >> 4) - 4][waits] if k < self.count - self.queued else _STRAY
        if after == _DONE:
            # 31-3.4-PUBACK, 31-3.7-PUBCOMP; MQTT-4.3.2-3, MQTT-4.3.3-5: id free now
            self.remove(k)
            self.is_due = self.queued + self.again + self.owed > 0
        elif after == _STRAY:
            self.stats.strays += 1
            return False
        elif waits != _OWE_PUBREL:
            if waits == _WAIT_PUBREC:
                if not k:
                    self._tries = 0
                self.store.pubrec(slot)
            states[slot] = states[slot] & ~_WAITS | _OWE_PUBREL
            if k < self.count - self.queued - self.again:
                self.owed += 1
                self.is_due = True
        return True

    def rewind(self, count):
        """Send all in flight again, in order: a new connection (`count` 0) or a
        time-out (`count` 1: one more try)."""
        self.owed = 0
        self.is_due = True
        self.again = self.count - self.queued
        for k in range(self.again):
            slot = self.order[k]
            if self.state[slot] & _WAITS == _WAIT_PUBCOMP:
                self.state[slot] ^= _WAIT_PUBCOMP ^ _OWE_PUBREL
        oldest_id = self.ids[self.order[0]]
        tries = self._tries if oldest_id == self._tried_id else 0
        self._tries = min(tries + 1, _MAX_TRIES) if count else 0
        self._tried_id = oldest_id

    def retry_in(self, now, most):
        """Ticks until the oldest message in flight is sent again, `most` at most."""
        if not self.retry_ms or self.again or self.count == self.queued:
            return most
        slot = self.order[0]
        # 31-4.2-RETRY: the time-out doubles with each try of one message.
        tries = self._tries if self.ids[slot] == self._tried_id else 0
        left = (self.retry_ms << tries) - ticks_diff(now, self.when[slot])
        return left if left < most else most

    def expires_in(self, now, most):
        """Ticks until the first waiting message is too old, `most` at most; `expired`
        is its index."""
        if self._aged:
            for k in range(self.count - self.queued, self.count):
                slot = self.order[k]
                if self.state[slot] & _AGED:
                    left = ticks_diff(self.when[slot], now)
                    if left < most:
                        most = left
                        self.expired = k
        return most

    def remove(self, k):
        """The message with index `k` is done or given up -> its packet id."""
        slot = self.order.pop(k)
        self.order.append(slot)  # its slot is now the last free one
        packet_id = self.ids[slot]
        self.ids[slot] = 0
        state = self.state[slot]
        self.count -= 1
        waiting = self.count - k  # how many are behind it
        if waiting < self.queued:
            self.queued -= 1
            if state & _AGED:
                self._aged -= 1
        elif waiting < self.queued + self.again:
            self.again -= 1
        elif state & _WAITS == _OWE_PUBREL:
            self.owed -= 1
        if not self.buffers:
            self.store.remove(slot)
        return packet_id

    # --- incoming ---------------------------------------------------------------

    def hold(self, packet_id, now):
        """A QoS 2 message was handed over; its id waits for PUBREL."""
        self.held[self.held_count] = packet_id
        self._held_at[self.held_count] = now
        self.held_count += 1
        self.store.hold(packet_id)

    def release(self, packet_id):
        """PUBREL came: the id is a new message from now on (MQTT-4.3.3-12).

        An unknown id changes nothing.
        """
        for k in range(self.held_count):
            if self.held[k] == packet_id:
                self.store.release(packet_id)
                self.held_count -= 1
                self.held.pop(k)
                self.held.append(0)
                self._held_at.append(self._held_at.pop(k))
                return

    def clear_held(self):
        """The broker starts a new session: its ids begin anew."""
        while self.held_count:
            self.release(self.held[0])

    def held_in(self, now, most):
        """RT-AWAITREL-T: ticks until the oldest id has waited too long, `most` at most."""
        if not self.held_count:
            return most
        return min(most, self.held_ms - ticks_diff(now, self._held_at[0]))
