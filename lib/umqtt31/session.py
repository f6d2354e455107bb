"""Which messages are in flight, what is due next, and in which order.

Theory of operation.  Outgoing messages stand in one ring, oldest first:

    head                cursor            inflight               count
     | sent, no answer    | to send again   | waiting (the queue)  |

A message enters at the end and leaves when it is acknowledged.  Only the first
`inflight` have been sent; they are at most the window.  On a new connection, and
when the oldest one got no answer in time, the cursor goes back to the head: all
in flight are sent again in their order, and nothing new before them.  So one
number is all that redelivery needs.  `order` holds slot numbers, those behind
`count` being the free slots; a slot is a place in the store and in the arrays.

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
    may be something for `next()`; `ids`: packet ids by slot, 0 for none; `control_id`:
    that of a SUBSCRIBE or UNSUBSCRIBE that waits; `held`: the first `held_count` are
    the received QoS 2 ids that wait for PUBREL; `is_starved`: one found no room.
    """

    def __init__(self, store, window, queue, held, level, now):
        n = window + queue
        self.store = store
        self.stats = Stats()
        self.window = window
        self.queue = queue
        self._level = level
        self.order = list(range(n))
        # By slot.  The ids are a list, which is searched in C.
        self.ids = [0] * n
        self.when = [0] * n  # ticks: last sent, or while queued: expiry
        self.state = bytearray(n)
        self.flags = bytearray(n)
        self._tries = bytearray(n)
        self.inflight = self.count = self.cursor = self.owed = self._aged = 0
        self.control_id = self.last_id = 0
        self.free_ids = 0  # how many follow the last one that nothing uses
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
        """The id of the next message; used up by `add()` only."""
        i = self.last_id + 1 if self.last_id < 65535 else 1
        if self.free_ids <= 0:
            # 31-2.4-ID, MQTT-4.3.2-1, MQTT-4.3.3-1: 1 to 65535, none that is in use.
            # All ids are looked at only after those free in a row are used up.
            while i in self.ids or i == self.control_id:
                i = i + 1 if i < 65535 else 1
            self.free_ids = (self.control_id - i) % 65535 if self.control_id else 65535
            for used in self.ids:
                if used:
                    self.free_ids = min(self.free_ids, (used - i) % 65535)
        return i

    def add(self, buf, n, packet_id, qos, is_online, when, now, sent):
        """Accept the packet `buf[:n]` at the end of the queue -> False: store full.

        `when`: ticks when it may be given up if it still waits, or None.
        `sent`: nothing precedes it, and it is sent right now.
        """
        count = self.count
        slot = self.order[count]
        if not self.store.put(slot, packet_id, qos, buf, n, is_online):
            return False
        if packet_id:
            self.last_id = packet_id
            self.free_ids -= 1
        self.ids[slot] = packet_id
        self.state[slot] = qos
        self._tries[slot] = 0
        self.count = count = count + 1
        if sent:
            self.cursor = self.inflight = count
            self.stats.sent += 1
            self.when[slot] = now
            qos |= _WAS_SENT
        else:
            self.is_due = True
            if when is not None:
                self.when[slot] = when
                self._aged += 1
                qos |= _AGED
        self.flags[slot] = qos
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
            slot = self.order[k]
            if self.state[slot] == _OWE_PUBREL:
                # 31-3.6, MQTT-4.3.3-6: PUBREL only, never PUBLISH again.
                self.cursor = k + 1
                self.owed += 1
                continue
            n = self.store.get(slot, buf)
            flags = self.flags[slot]
            if flags & _WAS_SENT:
                buf[0] |= _DUP  # 31-2.1-DUP
                self.stats.retried += 1
            else:
                self.stats.sent += 1
            if not flags & _QOS:
                self.remove(k)  # 31-4.1-Q0: sent once, no answer awaited
                return n
            if flags & _AGED:
                self._aged -= 1
            self.flags[slot] = flags & ~_AGED | _WAS_SENT
            self.when[slot] = now
            self.cursor = k + 1
            if k == self.inflight:
                self.inflight = k + 1
            return n

    def _next_pubrel(self, buf, now):
        for k in range(self.cursor):
            slot = self.order[k]
            state = self.state[slot]
            if state == _WAIT_PUBREC and self._level < 4:
                break  # 31-4.3-STAGE: PUBRELs in the order of the PUBLISHes
            if state == _OWE_PUBREL:
                n = write_ack(buf, 0, _PACKET_PUBREL, self.ids[slot])
                if self.flags[slot] & _RELEASED:
                    self.stats.retried += 1
                    if self._level < 4:
                        buf[0] |= _DUP
                self.state[slot] = _WAIT_PUBCOMP
                self.flags[slot] |= _RELEASED
                self.when[slot] = now
                self.owed -= 1
                return n
        return 0

    def on_ack(self, first, packet_id):
        """PUBACK, PUBREC or PUBCOMP by its first byte -> False if it is a stray."""
        k = 0
        ids = self.ids
        for slot in self.order:
            if ids[slot] == packet_id:
                break
            k += 1
        state = self.state[slot]
        after = _STRAY if k >= self.inflight else _NEXT[(first >> 4) - 4][state]
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
            self.state[slot] = _OWE_PUBREL
            if k < self.cursor:
                self.owed += 1
                self.is_due = True
        return True

    def rewind(self, count):
        """Send all in flight again, in order: a new connection (`count` 0) or a
        time-out (`count` 1: one more try)."""
        self.cursor = self.owed = 0
        self.is_due = True
        for k in range(self.inflight):
            slot = self.order[k]
            if self.state[slot] == _WAIT_PUBCOMP:
                self.state[slot] = _OWE_PUBREL
            self._tries[slot] = min(self._tries[slot] + 1, _MAX_TRIES) if count else 0

    def retry_in(self, now, most):
        """Ticks until the oldest message in flight is sent again, `most` at most."""
        if not self.retry_ms or not 0 < self.inflight == self.cursor:
            return most
        slot = self.order[0]
        # 31-4.2-RETRY: the time-out doubles with each try of one message.
        return min(most, (self.retry_ms << self._tries[slot]) - ticks_diff(now, self.when[slot]))

    def expires_in(self, now, most):
        """Ticks until the first waiting message is too old, `most` at most; `expired`
        is its index."""
        if self._aged:
            for k in range(self.inflight, self.count):
                slot = self.order[k]
                if self.flags[slot] & _AGED:
                    left = ticks_diff(self.when[slot], now)
                    if left < most:
                        most = left
                        self.expired = k
        return most

    def remove(self, k):
        """The message with index `k` is done or given up -> its packet id."""
        order = self.order
        slot = order.pop(k)
        order.append(slot)  # its slot is now the last free one
        ids = self.ids
        packet_id = ids[slot]
        if self._aged and self.flags[slot] & _AGED:
            self._aged -= 1
        if k < self.cursor:
            self.cursor -= 1
            if self.state[slot] == _OWE_PUBREL:
                self.owed -= 1
        if k < self.inflight:
            self.inflight -= 1
        self.count -= 1
        ids[slot] = 0
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
