"""The session: what is under way in both directions, what leaves next, in which order.

Theory of operation.  Every accepted message is its encoded packet in a slot of the
store, and stands in one ring, oldest first:

    first                     | unsent        | count
     | went out, no answer     | is to go out  |

The last `unsent` of the `count` messages did not go out on this connection; they do in
their order, as the window lets them.  A new connection and a time-out set `unsent` to
`count`: all goes out again, in order, and nothing new before it.  That is all that
redelivery needs, and while nothing waits a message comes and goes by `count` alone.
`_order` holds slot numbers by their place in the ring, and `_waits` what each slot waits
for.

Answers (PUBACK, PUBREC, PUBREL, PUBCOMP) are collected in a buffer of their own and go
first, once the store has made durable what they stand for.  One SUBSCRIBE or UNSUBSCRIBE
may be under way beside the ring; it takes no place from messages.

Received QoS 2 ids wait in `held` for their PUBREL: while an id is held, a PUBLISH with
it is a repetition, whatever its DUP flag says.

No I/O and no clock.  MQTT 3.1 §4; MQTT 5 §4.3 and §4.6.
"""

from struct import pack_into
from time import ticks_diff

from micropython import const

from .held import Held
from .packet import (
    HAS_SLICES,
    copy,
    new_buffer,
    size_of,
    write_header,
    write_number,
    write_string,
)
from .topic import check

_PACKET_PUBLISH = const(0x30)
_PACKET_PUBACK = const(0x40)
_PACKET_PUBREC = const(0x50)
_PACKET_PUBREL = const(0x62)  # 31-3.6-PUBREL: carries the QoS bits 01
_PACKET_PUBCOMP = const(0x70)
_DUP = const(0x08)

# What a message waits for: the first byte of the answer, or its own turn.
_WAIT_PUBACK = const(0x40)
_WAIT_PUBREC = const(0x50)
_OWE_PUBREL = const(0x60)
_WAIT_PUBCOMP = const(0x70)
_WAITS = const(0x70)
# Flags below it.
_WAS_SENT = const(0x01)  # its PUBLISH may have gone out before: DUP
_RELEASED = const(0x02)  # so did its PUBREL
_OLD = const(0x04)  # from before this clean session
_AGED = const(0x08)  # may be given up at its time, while it waits
_MAYBE = const(0x80)  # an earlier life may have sent it: DUP

_ACKS_BYTES = const(128)  # 32 answers, more than a broker's usual window

# Codes of MQTTError: publish() returns them negative, in place of a packet id.
_TOO_LARGE = const(260)
_FULL = const(261)
_BUSY = const(263)

_PLAIN = (bytes, bytearray)  # made here, since making a tuple allocates


# A builtin is found only behind a miss in the module and a linear search.
_bytes = bytes
_len = len


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


def as_bytes(name, value):
    """`value` as bytes in some form: a str is encoded.  Raises TypeError naming `name`."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, _PLAIN):
        return value
    if not isinstance(value, memoryview):
        return _copied(name, value)
    return value if getattr(value, "itemsize", 1) == 1 else bytes(value)


def _copied(name, value):
    try:
        return bytes(memoryview(value))  # an array, whatever its elements
    except TypeError:
        raise TypeError("%s must be bytes or str, not %r" % (name, value))


class Session:
    """The state of one client's session, over connections and, with a store that can,
    over resets.

    `count` messages are here; the last `unsent` did not go out on this connection.
    `out[at:end]` waits to be written; who writes counts `at` up, and `next()` goes on
    when it has come to `end`.  `is_online`: may messages go out?  `is_due`: there may be
    something for `next()`.  `news`: since its reader last set it to 0, something was sent
    (1), what is timed began or went on (2).  `room`: bytes left for answers.  `aged`:
    how many of those waiting have a time.  While `is_ending` only answers go out.
    """

    def __init__(self, store, window, queue, size, dup):
        n = window + queue
        self.store = store
        self.stats = Stats()
        self.window = window
        self._queue = queue
        self._size = size
        self._format = "%ds" % size
        self._dup = dup  # the bit for PUBRELs and requests that are sent again
        self.mqueue_store_qos0 = self.is_ordered = False
        self._order = list(range(n))
        # By slot.  The ids are a list, which is searched in C; the last is the request's.
        self._ids = [0] * (n + 1)
        self._expiry = [0] * n  # ticks
        self._waits = bytearray(n)
        self._n = n
        self.first = self.count = self.unsent = self.aged = self._owed = 0
        self._fast = 0  # up to which length a message takes the fast way now
        self.last_id = self._id_end = 0
        self.request = None  # (first byte, filters, their QoS), the one that is under way
        # It went out on this connection since the last time-out; it ever did.
        self._is_requested = self._was_requested = False
        self._checked = self  # or the topic that was found valid last
        self._topic = None
        self._topic_len = self._slot_put = self._length = 0
        self.is_online = self.is_due = False
        self.news = 0
        self._acks = bytearray(_ACKS_BYTES)
        self._spare_acks = bytearray(_ACKS_BYTES)
        self.room = _ACKS_BYTES
        self.is_ending = self._is_locked = False
        self._tx = self.out = new_buffer(size)
        self.at = self.end = 0
        self._short = self._direct = 0
        self.held = None

    def open(self, client_id, held):
        """Allocate what is left: the store's part, and room for `held` received ids."""
        self._make_buffers(client_id, held)
        self.held = Held(held, self.store)

    def resize(self, size):
        """Packets may have `size` bytes from now on; nothing is under way, and the store
        keeps nothing but messages.  Allocates."""
        self._size = size
        self._format = "%ds" % size
        self._tx = self.out = self._encoded = self._buffers = None  # before the new ones come
        self._tx = self.out = new_buffer(size)
        self._make_buffers(None, 0)

    def _make_buffers(self, client_id, held):
        store = self.store
        store.open(client_id, self._n, self._size, held)
        # Packets may be encoded where they are kept, if there is room for how they are
        # copied; else they are encoded here.
        self._buffers = getattr(store, "buffers", None) if HAS_SLICES else None
        self._used = getattr(store, "used", None)
        self._encoded = None if self._buffers else new_buffer(self._size)
        # Up to which length a message takes the fast way; longer ones have more header.
        self.lock(False)
        # How many messages there may be so that one more takes it: the window, if packets
        # need no record.
        self._direct = self.window if self._buffers else 0

    # --- outgoing messages --------------------------------------------------------

    def publish(self, topic, msg, flags):
        """Accept a message, without waiting; `flags`: QoS << 1, + 1 to retain.

        -> packet id, 0 at QoS 0; the negative code of an error, and nothing changed.  Raises
        ValueError, TypeError; MQTTError by the store.
        """
        if topic is not self._checked:
            topic = self._check(topic)
        if msg.__class__ is not _bytes:
            msg = as_bytes("msg", msg)
        slot = self._topic_len + 4
        n = slot + _len(msg)
        if flags > 1:
            n += 2
        if n > self._fast or self.at != self.end or flags > 1 and self.count >= self._direct:
            self._topic = topic
            return self._publish(msg, flags)
        # The fast way of what _publish() and next() do together: nothing precedes it.
        if flags > 1:
            if self.last_id + 1 >= self._id_end:
                self._next_id()
            slot = self.first + self.count
            if slot >= self._n:
                slot -= self._n
            self._slot_put = slot = self._order[slot]
            buf = self._buffers[slot]
            slot = self._topic_len + 4
            buf[slot] = self.last_id + 1 >> 8
            buf[slot + 1] = self.last_id + 1 & 255
            slot += 2
        else:
            buf = self._tx
        buf[slot:n] = msg
        slot = self._topic_len + 4
        buf[4:slot] = topic
        buf[0] = 0x30 | flags
        buf[1] = n - 2
        buf[2] = 0
        buf[3] = slot - 4
        self.out = buf
        self.at = 0
        self.end = n
        self.stats.sent += 1
        if flags < 2:
            self.news |= 1
            return 0
        slot = self.count
        if slot:
            self.news |= 1
        else:
            self.news = 3
        self.count = slot + 1
        slot = self._slot_put
        self._used[slot] = n
        self._waits[slot] = 0x31 + (flags << 3 & 0x30)
        n = self.last_id + 1
        self.last_id = n
        self._ids[slot] = n
        return n

    def _check(self, topic):
        name = as_bytes("topic", topic)
        check(name)  # 31-3.3-WILD
        # What cannot change need not be checked again.
        self._checked = topic if topic.__class__ is bytes else self
        self._topic_len = len(name)
        return name

    def lock(self, is_locked):
        """While it is locked, nothing is accepted: publish() says BUSY."""
        self._is_locked = is_locked
        # With 0 nothing takes the fast way.
        self._short = min(self._size, 129) if HAS_SLICES and not is_locked else 0
        self._fast = 0
        self.is_due = True

    def _publish(self, msg, flags):
        # The general way of publish(): the message enters the ring; next() sends it.
        if self._is_locked:
            return -_BUSY
        if size_of(self._topic_len + len(msg) + (4 if flags > 1 else 2)) > self._size:
            return -_TOO_LARGE
        if flags < 2:
            is_free = self.at == self.end and self.is_online
            if is_free and not (self.mqueue_store_qos0 and self.unsent):
                # Kept nowhere: at QoS 0 it goes at once or waits its turn.
                self.stats.sent += 1
                flags = self._encode(self._tx, msg, flags)
                self._write_out(self._tx, flags)
                return 0
            if not self.mqueue_store_qos0:
                return -_FULL
        if self.count - self.inflight() >= self.places() or self.count >= self._n:
            return -_FULL
        if flags > 1 and self.last_id + 1 >= self._id_end:
            self._next_id()
        self._slot_put = self._slot(self.count)
        self._length = self._encode(self._buffer(self._slot_put), msg, flags)
        flags = self._keep(flags)
        if self.is_online and not self.store.is_deferred:
            self.next()  # else the messages of one poll() share a commit()
        return flags

    def places(self):
        """-> how many messages may wait: in the queue or, on a connection, for the window."""
        room = self.window - self.inflight() if self.is_online else 0
        return room if room > self._queue else self._queue

    def _buffer(self, slot):
        # Where a packet for `slot` is to be encoded.
        if not self._buffers:
            return self._encoded
        buf = self._buffers[slot]
        if self.out is buf and self.at != self.end:
            # Half of what stood here before still waits to be written.
            pack_into(self._format, self._tx, 0, buf)
            self.out = self._tx
        return buf

    def _keep(self, flags):
        # The packet is encoded: have the store keep it.
        slot = self._slot_put
        packet_id = self.last_id + 1 if flags > 1 else 0
        if self._buffers:
            self._used[slot] = self._length
        elif not self._put(flags >> 1, packet_id):
            return -_FULL
        if packet_id:
            self.last_id = packet_id
        self._ids[slot] = packet_id
        self._waits[slot] = 0x30 + (flags << 3 & 0x30) if packet_id else 0
        self.count += 1
        self.unsent += 1
        self._fast = 0
        self.is_due = True
        return packet_id

    def _put(self, qos, packet_id):
        return self.store.put(
            self._slot_put, packet_id, qos, self._encoded, self._length, self.is_online
        )

    def _encode(self, buf, msg, flags):
        pos = self._topic_len + len(msg) + (4 if flags > 1 else 2)
        pos = write_string(buf, write_header(buf, _PACKET_PUBLISH | flags, pos), self._topic)
        if flags > 1:  # 31-3.3-IDQOS
            pos = write_number(buf, pos, self.last_id + 1)
        return copy(buf, pos, msg)

    def _next_id(self):
        # 31-2.4-ID, MQTT-4.3.2-1, MQTT-4.3.3-1: 1 to 65535, none that is in use.  All
        # ids are looked at only after those free in a row are used up.
        i = self.last_id % 65535 + 1
        while i in self._ids:
            i = i % 65535 + 1
        end = 65536
        for used in self._ids:
            if i < used < end:
                end = used
        self._id_end = end
        # From here on to `_id_end` all are free, whether the caller takes one or not.
        self.last_id = i - 1
        return i

    def _slot(self, k):
        # -> slot of the message with index `k`.
        k += self.first
        return self._order[k if k < self._n else k - self._n]

    def expire_at(self, packet_id, ticks):
        """The message accepted last, with this id, may be given up at `ticks`, if it still
        waits then."""
        slot = self._slot(self.count - 1)
        if self.unsent and self._ids[slot] == packet_id and not self._waits[slot] & _WAS_SENT:
            self._expiry[slot] = ticks
            self._waits[slot] |= _AGED
            self.aged += 1

    def inflight(self):
        """-> messages that went out and wait for an answer, on this connection or not."""
        k = self.count - self.unsent
        while k < self.count and self._waits[self._slot(k)] & _WAS_SENT:
            k += 1
        return k

    def has_id(self, packet_id):
        """Is the message with this id still under way?"""
        return packet_id in self._ids

    # --- what leaves next ----------------------------------------------------------

    def next(self):
        """Is there a packet to write?  Then it stands in `out`.  Raises MQTTError by the
        store, with nothing lost."""
        if self.at != self.end:
            return True
        # Nothing overtakes its record.  MQTT-4.6-RM1: what is done stays so, too.
        self.store.sync() if self.is_ordered else self.store.commit()
        if not self.is_online:
            return False
        if self._owed:
            self._release()
        n = _ACKS_BYTES - self.room
        if n:
            # MQTT-4.6.0-2, -3: answers leave in the order in which they were caused.
            self.out = self._acks
            self._acks = self._spare_acks
            self._spare_acks = self.out
            self.room = _ACKS_BYTES
            self.at = 0
            self.end = n
            self.news |= 1
            if not (self.unsent or self.request or self._owed):
                self._rest()
            return True
        if self.is_ending:
            return False
        if self.request and not self._is_requested:
            return self._send_request()
        if self.unsent:
            n = self.count - self.unsent
            if n < self.window or self._waits[self._slot(n)] & _WAS_SENT:
                return self._send(self._slot(n))
            self.is_due = False
        else:
            self._rest()
        return False

    def _rest(self):
        # All has gone out.
        self.is_due = False
        self._fast = self._short

    def _write_out(self, buf, n):
        self.out = buf
        self.at = 0
        self.end = n
        self.news |= 1
        return True

    def write_first(self, packet):
        """Write a whole packet before all else; nothing may be half written."""
        self._write_out(packet, len(packet))

    def _send(self, slot):
        # The message in `slot` is next in the ring.
        waits = self._waits[slot]
        if self.count == self.unsent and not waits & _WAS_SENT:
            self.news |= 2
        self.unsent -= 1
        if waits & _WAITS >= _OWE_PUBREL:
            # 31-3.6, MQTT-4.3.3-6: PUBREL only, never PUBLISH again.
            self._waits[slot] = waits & ~_WAITS | _OWE_PUBREL
            self._owed += 1
            return self.next()
        if self._buffers:
            buf = self._buffers[slot]
            n = self._used[slot]
        else:
            buf = self._tx
            n = self.store.get(slot, buf)
        if waits & (_WAS_SENT | _MAYBE):
            buf[0] |= _DUP  # 31-2.1-DUP
            self.stats.retried += 1
        else:
            buf[0] &= ~_DUP
            self.stats.sent += 1
        if waits & _AGED:
            self.aged -= 1
        if waits & _WAITS:
            self._waits[slot] = waits & ~_AGED | _WAS_SENT
        else:
            self.remove(self.count - self.unsent - 1)  # 31-4.1-Q0: sent once, no answer awaited
        return self._write_out(buf, n)

    # --- answers ---------------------------------------------------------------------

    def can_close(self):
        """Is no answer owed any more?"""
        return self.room == _ACKS_BYTES and self.at == self.end

    def is_waiting(self):
        """Is an answer awaited, to a message or a request?"""
        return self.count > self.unsent or self._is_requested

    def answer(self, first, packet_id):
        """Owe a PUBACK, PUBREC, PUBREL or PUBCOMP."""
        acks = self._acks
        n = _ACKS_BYTES - self.room
        acks[n] = first
        acks[n + 1] = 2
        acks[n + 2] = packet_id >> 8
        acks[n + 3] = packet_id & 255
        self.room -= 4
        self.is_due = True
        self._fast = 0  # no message overtakes an answer

    def on_ack(self, first, packet_id):
        """PUBACK, PUBREC or PUBCOMP by its first byte; a stray changes nothing."""
        slot = self._order[self.first]
        if self._ids[slot] != packet_id:
            slot = self._find(packet_id)
        elif self._waits[slot] & ~_RELEASED == first | _WAS_SENT and not self._owed:
            # The usual cases of the rest: what the oldest message waits for.
            self.news |= 2
            if first == _PACKET_PUBREC:
                self._on_pubrec(slot)
                return
            if not self._buffers:
                self.store.remove(slot)
            self._ids[slot] = self._waits[slot] = 0
            slot = self.count
            if self.unsent:
                if self.unsent == slot:
                    self.unsent -= 1
                self.is_due = True
            slot -= 1
            self.count = slot
            if slot:  # else the next one takes its place
                slot = self.first + 1
                self.first = slot if slot < self._n else 0
            return
        waits = self._waits[slot] if slot >= 0 else 0
        waits = waits & _WAITS if waits & _WAS_SENT else 0
        if waits and slot == self._order[self.first]:
            self.news |= 2  # what is timed is the oldest message
        if waits == first:
            # 31-3.4-PUBACK, 31-3.7-PUBCOMP; MQTT-4.3.2-3, MQTT-4.3.3-5: id free now
            if first == _PACKET_PUBREC:
                self._on_pubrec(slot)
            else:
                self.remove(self._index(slot))
                self.is_due = True
        elif first != _PACKET_PUBREC or waits < _OWE_PUBREL:
            self.stats.strays += 1
            if first == _PACKET_PUBREC and not waits:
                self.answer(_PACKET_PUBREL, packet_id)  # of nothing that is known
        elif waits == _WAIT_PUBCOMP:
            self._owe(slot)  # PUBREC again: so is its PUBREL

    def _find(self, packet_id):
        # -> slot of the message with this id, -1 if there is none.
        if packet_id:
            for slot in range(self._n):
                if self._ids[slot] == packet_id:
                    return slot
        return -1

    def _index(self, slot):
        k = 0
        while self._slot(k) != slot:
            k += 1
        return k

    def _on_pubrec(self, slot):
        self.store.pubrec(slot)
        self._owe(slot)

    def _owe(self, slot):
        self._waits[slot] = self._waits[slot] & ~_WAITS | _OWE_PUBREL
        self.is_due = True
        if self._index(slot) < self.count - self.unsent:  # else when its turn comes
            self._owed += 1
            if not self._dup and self.room:
                self._release_one(slot)  # MQTT-4.6.0-4: in the order of the PUBRECs

    def _release(self):
        # Write the PUBRELs that are owed, as far as there is room.
        k = 0
        while k < self.count - self.unsent and self._owed and self.room:
            slot = self._slot(k)
            waits = self._waits[slot] & _WAITS
            if waits == _WAIT_PUBREC and self._dup:
                break  # 31-4.3-STAGE: PUBRELs in the order of the PUBLISHes
            if waits == _OWE_PUBREL:
                self._release_one(slot)
            k += 1

    def _release_one(self, slot):
        waits = self._waits[slot]
        self._waits[slot] = waits & ~_WAITS | _WAIT_PUBCOMP | _RELEASED
        self._owed -= 1
        first = _PACKET_PUBREL
        if waits & _RELEASED:
            self.stats.retried += 1
            first |= self._dup
        self.answer(first, self._ids[slot])

    # --- for recovery and giveup --------------------------------------------------------

    def insert(self, slot, packet_id, waits):
        """A message that the store has in `slot` enters at the end of the ring."""
        order = self._order
        order.remove(slot)
        order.insert(self.count, slot)
        self._ids[slot] = packet_id
        self._waits[slot] = waits
        self.count += 1
        self.unsent += 1

    def mark_sent(self):
        """All that is here is in flight."""
        for k in range(self.count):
            self._waits[self._slot(k)] |= _WAS_SENT

    def qos(self):
        """-> QoS of the newest message, 0 if there is none."""
        waits = self._waits[self._slot(self.count - 1)] & _WAITS if self.count else 0
        return waits and (1 if waits == _WAIT_PUBACK else 2)

    def flags(self, k):
        """-> what the message with index `k` waits for, and its flags."""
        return self._waits[self._slot(k)]

    def packet(self, k):
        """-> a buffer with its packet, valid until the next call."""
        slot = self._slot(k)
        if self._buffers:
            return self._buffers[slot]
        self.store.get(slot, self._encoded)
        return self._encoded

    # --- what goes, and what begins again ------------------------------------------------

    def remove(self, k):
        """The message with index `k` is done or given up -> its packet id."""
        slot = self._slot(k)
        packet_id = self._ids[slot]
        waits = self._waits[slot]
        if not self._buffers:
            self.store.remove(slot)
        self._ids[slot] = self._waits[slot] = 0
        if k >= self.count - self.unsent:
            self.unsent -= 1
            if waits & _AGED:
                self.aged -= 1
        elif waits & _WAITS == _OWE_PUBREL:
            self._owed -= 1
        # Its slot becomes the first one behind the ring, and those before it move up.
        while k:
            i = (self.first + k) % self._n
            k -= 1
            self._order[i] = self._slot(k)
        self._order[self.first] = slot
        self.first = (self.first + 1) % self._n
        self.count -= 1
        return packet_id

    def rewind(self):
        """Send all in flight again, in order: a time-out, or a new connection."""
        self.unsent = self.count
        self._owed = self._fast = 0
        self._is_requested = False
        self.is_due = True

    def renew(self, is_clean):
        """The broker has a new session: all in flight is sent again as new, no id is
        held.  `is_clean`: it ends with its connection."""
        for slot in range(self._n):
            waits = self._waits[slot] & ~(_WAS_SENT | _RELEASED | _MAYBE)
            if waits & _WAITS >= _OWE_PUBREL:
                waits = waits & ~_WAITS | _WAIT_PUBREC
            self._waits[slot] = waits
        self.held.clear()
        self.store.renew(is_clean)

    def connected(self):
        """A connection is open: from now on every message may have been sent."""
        self.rewind()
        self.room = _ACKS_BYTES
        self.is_online = True
        self.store.online()

    def disconnected(self):
        """The connection is gone, and with it what was half written."""
        self.is_online = False
        if self.out is self._spare_acks:
            self._take_back(self.out, self.at + 3 & ~3, self.end)
        self._take_back(self._acks, 0, _ACKS_BYTES - self.room)
        self.room = _ACKS_BYTES
        self.unsent = self.count
        self._owed = self._fast = self.at = self.end = 0
        self.is_due = True  # for the front to look
        self.request = None
        self._ids[self._n] = 0

    def _take_back(self, acks, at, end):
        # First PUBRELs among these answers never went out.
        while at < end:
            slot = self._find(acks[at + 2] << 8 | acks[at + 3])
            if slot >= 0 and acks[at] == _PACKET_PUBREL:
                self._waits[slot] &= ~_RELEASED
            at += 4

    # --- what waits too long -------------------------------------------------------------

    def expires_in(self, now, most):
        """Ticks until the first waiting message is too old, `most` at most."""
        k = self._next_aged(self.count - self.unsent) if self.aged else -1
        while k >= 0:
            left = ticks_diff(self._expiry[self._slot(k)], now)
            if left < most:
                most = left
            k = self._next_aged(k + 1)
        return most

    def _next_aged(self, k):
        # The first message from `k` on that has an age and waits, -1 for none.
        while k < self.count:
            if self._waits[self._slot(k)] & _AGED:
                return k
            k += 1
        return -1

    def find_expired(self, now):
        """-> index of a waiting message that is too old, -1 for none."""
        k = self._next_aged(self.count - self.unsent) if self.aged else -1
        while k >= 0 and ticks_diff(self._expiry[self._slot(k)], now) > 0:
            k = self._next_aged(k + 1)
        return k

    # --- SUBSCRIBE and UNSUBSCRIBE ---------------------------------------------------------

    def ask(self, request):
        """Send the request (first byte, filters, their QoS), once it is free to go."""
        self._next_id()
        self.last_id += 1
        self._ids[self._n] = self.last_id
        self.request = request
        self._is_requested = self._was_requested = False
        self.is_due = True

    def _send_request(self):
        first = self.request[0]
        if self._was_requested:
            first |= self._dup  # 31-2.1-DUP, RT-OBJECTS
        elif self.count == self.unsent:
            self.news |= 2
        self._was_requested = self._is_requested = True
        return self._write_out(self._tx, self._write_request(self.request, first))

    def _write_request(self, request, first):
        buf = self._tx
        length = 2
        for name in request[1]:
            length += len(name) + (3 if request[2] else 2)
        length = write_number(buf, write_header(buf, first, length), self._ids[self._n])
        for k in range(len(request[1])):
            length = write_string(buf, length, request[1][k])
            if request[2]:
                buf[length] = request[2][k]
                length += 1
        return length

    def on_request_ack(self, packet_id):
        """SUBACK or UNSUBACK -> the request that it answers, or None."""
        request = self.request
        if request and packet_id == self._ids[self._n]:
            self._ids[self._n] = 0
            self.request = None
            self._is_requested = False
            self.news |= 2
            return request
        return None
