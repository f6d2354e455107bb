"""The protocol without I/O, sleep or clock: bytes in, bytes out, ticks in.

A front opens a stream, gives `begin()` the settings of the connection, and then turns
three handles: what it reads goes to `received()`, what `next()` shows it writes, and
`tick()` learns the time.  When `received()` says MESSAGE, the message stands in `message`
until the next call; `acknowledge()` it when it is handed over.  An error is a return
value, its code; after one the front closes its stream and calls `lost()`.  A front also
hands over its stream's write(), for what can go at once: what it leaves waits as ever.

MQTT 3.1 §2.2 (keep alive), §3, §4; 3.1.1; MQTT 5 §4.3 and §4.6.
"""

# Theory of operation (a comment: MicroPython keeps a module's docstring in RAM while it
# compiles the rest).  Every accepted message is its encoded packet in a slot of the
# store, and stands in one ring, oldest first:
#
#     first                     | unsent        | count
#      | went out, no answer     | is to go out  |
#
# The last `unsent` of the `count` messages did not go out on this connection; they do in
# their order, as the window lets them.  A new connection and a time-out set `unsent` to
# `count`: all goes out again, in order, and nothing new before it.  That is all that
# redelivery needs, and while nothing waits a message comes and goes by `count` alone.
# `_order` holds slot numbers by their place in the ring, and `_waits` what each slot waits
# for.
#
# Answers (PUBACK, PUBREC, PUBREL, PUBCOMP) are collected in a buffer of their own and go
# first, once the store has made durable what they stand for.  One SUBSCRIBE or UNSUBSCRIBE
# may be under way beside the ring; it takes no place from messages.
#
# Received QoS 2 ids wait in `held` for their PUBREL: while an id is held, a PUBLISH with
# it is a repetition, whatever its DUP flag says.

from struct import pack_into
from time import ticks_add, ticks_diff

from micropython import const, heap_lock, heap_unlock

from .framing import Framing
from .held import Held
from .message import Message
from .packet import (
    HAS_SLICES,
    as_bytes,
    copy,
    end_of,
    new_buffer,
    size_of,
    write_header,
    write_number,
    write_string,
)
from .topic import check

_OPENING = const(1)  # CONNECT is on its way
_ONLINE = const(2)

_PACKET_PUBLISH = const(0x30)
_PACKET_PUBACK = const(0x40)
_PACKET_PUBREC = const(0x50)
_PACKET_PUBREL = const(0x62)  # 31-3.6-PUBREL: carries the QoS bits 01
_PACKET_PUBCOMP = const(0x70)
_DUP = const(0x08)
_PINGREQ = b"\xc0\x00"

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
_DONE = const(0x20)  # waits for nothing but to be given up
_MAYBE = const(0x80)  # an earlier life may have sent it: DUP

_ACKS_BYTES = const(128)  # 32 answers, more than a broker's usual window

# Codes of MQTTError: accept() returns them negative, in place of a packet id.
_TIMEOUT = const(257)
_PROTOCOL = const(259)
_TOO_LARGE = const(260)
_FULL = const(261)
_JOURNAL = const(262)
_BUSY = const(263)
_AWAITING_REL = const(264)

_WAKE_MS = const(500)
# Set in the ticks from now to a moment that is past, or more than 511 ms away.
_NOT_SOON = const(0x3FFFFE00)
_MAX_TRIES = const(6)
_DAY_MS = const(86400000)

# What received() says, beside 0 (more has to come) and codes of errors from 256 on or,
# from the broker's CONNACK, of REFUSED and more.
HANDLED = const(1)
MESSAGE = const(2)
OVERSIZE = const(3)
ACCEPTED = const(4)
REFUSED = const(512)

# What a broker may send, by packet type: 0 nothing of it, 1 any length, else the
# length of its body plus 2.
#             -  CON ACK PUB  A   REC REL COM SUB ACK UNS ACK PING RSP DIS -
_LENGTHS = b"\x00\x00\x00\x01\x04\x04\x04\x04\x00\x01\x00\x04\x00\x02\x00\x00"

# What a PUBLISH waits for once it went out, by its flags.
_SENT_AS = b"\x00\x00\x41\x41\x51\x51"

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


class Protocol:
    """One client's side of MQTT, over one connection after another and, with a store that
    can, over resets.

    What to read next is in `framing`.  What to write is `left` bytes of `out`, the last
    before `end`; who writes counts `left` down, says `wait()` when the stream takes no more,
    and `next()` goes on when it is 0.
    `write`: the stream's, for what can go at once, given once a stream is open.  Called by
    accept(), where what the stream raises is told to `failed(error, flags)`, also the owner's,
    and by received(), unless `is_shared`: one thread calls it while another is in accept().
    `is_due`: there may be something for `next()`.  `state`: 0 closed, 1 opening, 2 the
    broker accepted.  `count` messages are here; the last `unsent` did not go out on this
    connection.  `aged`: how many of those waiting have a time.  `room`: bytes left for
    answers.  While `is_ending` only answers go out.
    `is_present`: what the last CONNACK said of the session; `is_new`: the broker began a new
    one since the front set it to False.  `has_moved`: since
    `tick()` what is timed began or went on; it is timed from the next one.  `now`: ticks of
    the last one, so what was sent since then went out at that time or later.  `rx_at`: ticks
    of the last packet that came.
    `keepalive_ms`; `retry_ms`: until all is sent again, 0 for never; `held_ms`: that a received
    QoS 2 id waits for its PUBREL; `timeout_ms`: that the stream may take nothing.
    """

    # What level 5 makes in another way.
    _new_message = Message
    _acks_bytes = _ACKS_BYTES

    def __init__(self, store, window, queue, size, level, filters):
        # Numbers first: the table of attributes grows before the buffers lie beside it.
        self.first = self.count = self.unsent = self.aged = self._owed = 0
        self._fast = 0  # up to which length a message takes the fast way now
        self._short = self._direct = 0
        self.last_id = self._id_end = 0
        self.end = self.left = self._stuck_at = self.state = self._tries = 0
        self.now = self._tx_at = self.rx_at = self._ping_at = self._moved_at = self._wake_at = 0
        self.mqueue_store_qos0 = self.is_ordered = self._is_locked = self.is_ending = False
        self.is_shared = False
        self.is_present = self.is_new = self.is_clean = self.was_clean = self.is_starved = False
        self.is_due = self.is_pinging = self._was_online = self.has_moved = False
        # Of the filters, the broker knows so many; so many were sent to it.
        self._known = self._asked = 0
        self.request = None  # the one that is under way, see ask()
        # It went out on this connection since the last time-out; it ever did.
        self._is_requested = self._was_requested = False
        self._checked = self  # or the topic that was found valid last
        self._topic_end = 4  # in a short packet
        self.held = self._buffers = self.write = self._format = self._tx = self.out = None
        self._is_putting = False
        self.keepalive_ms = self.retry_ms = self.held_ms = self.timeout_ms = 0
        n = window + queue
        self.store = store
        self.window = window
        self._queue = queue
        self._size = size  # of packets, until resize()
        self.level = level
        self._section = level // 5  # bytes of a PUBLISH that say that it has no properties
        self._n = n
        self.room = _ACKS_BYTES
        self.stats = Stats()
        self.filters = []  # what the broker is to know: a request for each filter
        self.most_filters = filters
        # A method is found only behind a search among all attributes, but for these.
        self.accept = self.accept
        self.received = self.received
        self.acknowledge = self.acknowledge
        self._on_publish = self._on_publish
        self._answer = self._answer
        self.next = self.next
        self.tick = self.tick
        self.framing = Framing(size)
        self._take = self.framing.take
        self._head = self.framing.head
        self.message = self._new_message(self.framing.rx)
        self._read = self.message.read
        self._order = list(range(n))
        # By slot.  The ids are a list, which is searched in C; the last is the request's.  That
        # of a free slot, which waits for nothing, stays until _next_id() looks at all.
        self._ids = [0] * (n + 1)
        self._expiry = [0] * n  # ticks
        self._waits = bytearray(n)
        self._acks = bytearray(self._acks_bytes)
        self._spare_acks = bytearray(self._acks_bytes)

    def open(self, client_id, held):
        """Allocate what is left: the store's part, and room for `held` received ids."""
        self.store.level = self.level
        # Called before each packet, so that none overtakes its record.
        self.commit = self.store.commit
        self._make_buffers(client_id, held, self._size)
        self.held = getattr(self.store, "Held", Held)(held, self.store)

    def resize(self, size):
        """Packets may have `size` bytes from now on; nothing is under way, and the store
        keeps nothing but messages.  Allocates."""
        self._make_buffers(None, 0, size)

    def _make_buffers(self, client_id, held, size):
        # Without memory for it all is too large, until there is some.
        self._size = self._short = self._fast = 0
        self._format = "%ds" % size
        self._tx = self.out = self._buffers = None  # before the new ones come
        self._tx = self.out = new_buffer(size)
        store = self.store
        store.open(client_id, self._n, size, held)
        # Where the packet of each slot is encoded: where it is kept, if there is room for how it
        # is copied; else in one buffer for all, from which the store is given it.
        self._buffers = getattr(store, "buffers", None) if HAS_SLICES else None
        self._is_putting = not self._buffers
        if self._is_putting:
            self._buffers = [new_buffer(size)] * self._n
        self._size = size
        # Up to which length a message takes the fast way; longer ones have more header.
        self.lock(False)
        # How many messages there may be so that one more takes it: the window, unless it has
        # to wait for a record.
        self._direct = 0 if self.is_ordered or store.is_deferred else self.window

    def use(self, rx):
        """Receive into `rx` from now on, as `Framing.use()`.  Allocates, and then nothing
        has changed if there is no memory."""
        self.message.use(rx)
        self.framing.use(rx)

    # --- connections -------------------------------------------------------------------------

    def begin(self, is_clean, connect, now):
        """A stream is open, on which the packet `connect` goes first."""
        self.framing.reset()
        self.is_clean = is_clean
        self.write_first(connect)
        self.state = _OPENING
        self.now = self._tx_at = self.rx_at = now

    def lost(self):
        """The stream is closed, and what was half written is gone with it."""
        if self.state == _OPENING and not self.left:
            self._known = 0  # there may be a new session, and its CONNACK is lost
        self.state = 0
        self.write = None
        if self.out is self._spare_acks:
            self._take_back(self.out, self.end - self.left + 3 & ~3, self.end)
        self._take_back(self._acks, 0, _ACKS_BYTES - self.room)
        self.room = _ACKS_BYTES
        self.rewind()  # and is due, for the front to look
        self.left = 0
        self.request = None
        self._ids[-1] = 0

    def _accept(self, first):
        # 31-3.2-CONNACK, 31-2.2-RC
        framing = self.framing
        code = framing.field
        if first >> 4 != 2 or framing.length != 2:
            return _PROTOCOL
        if code & 255:
            return REFUSED + (code & 255)
        self.is_present = False
        if self.level > 3:
            self.is_present = code == 0x100
            if code > 0x100 or self.is_present and self.is_clean:
                return _PROTOCOL
        return self._begin_session()

    def _begin_session(self):
        # A clean session ends with its connection, so what follows one is new, too; if it is
        # present, a CONNECT that was under way for long has made it.
        if self.was_clean:
            self.is_present = False
        if self.is_clean or self.was_clean or self.level > 3 and not self.is_present:
            self.is_new = True
            self.renew(self.is_clean)
        self.was_clean = self.is_clean
        self.connected()
        # At level 3 the broker cannot say that it kept the filters.
        if not self.is_present:
            self._known = 0
        self._asked = self._known
        self.is_starved = self.is_pinging = False
        self.has_moved = True  # 31-4.2-RETRY: what is sent again is timed from here
        if self._was_online:
            self.stats.reconnects += 1
        self._was_online = True
        self._ask_next()
        return ACCEPTED

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
        self.state = _ONLINE
        self.store.online()

    def _take_back(self, acks, at, end):
        # First PUBRELs among these answers never went out.
        while at < end:
            slot = self._find(acks[at + 2] << 8 | acks[at + 3])
            if slot >= 0 and acks[at] == _PACKET_PUBREL:
                self._waits[slot] &= ~_RELEASED
            at += 4

    # --- outgoing messages -------------------------------------------------------------------

    def prepare(self, properties, max_age):
        """The next message has these -> what to add to its flags for accept()."""
        if max_age and not (isinstance(max_age, int) and 0 < max_age <= 86400):
            kind = ValueError if isinstance(max_age, int) else TypeError
            raise kind("max_age must be 0 to 86400, not %r" % (max_age,))
        if properties:
            raise ValueError("properties need level=5")
        return 0

    def accept(self, topic, msg, flags):
        """Accept a message, without waiting; `flags`: QoS << 1, + 1 to retain, + what
        prepare() said.  Entered with the heap locked, which it unlocks.

        -> packet id, 0 at QoS 0; the negative code of an error, and nothing changed.  Raises
        ValueError, TypeError; MQTTError by the store.
        """
        heap_unlock()
        if topic is not self._checked:
            topic = self._check(topic)
        if msg.__class__ is not _bytes:
            msg = as_bytes("msg", msg)
        section = self._section
        pos = self._topic_end
        start = pos + section
        n = start + _len(msg)
        if flags > 1:
            n += 2
            count = self.count
            if count >= self._direct:
                n = 65536
        if n > self._fast or self.left:
            heap_lock()
            return self._accept_slowly(topic, msg, flags)
        # The fast way of what _accept_slowly() and next() do together: nothing precedes it.
        packet_id = 0
        if flags > 1:
            packet_id = self.last_id + 1
            if packet_id >= self._id_end:
                packet_id = self._next_id()
            slot = self.first
            if count:
                slot += count
                if slot >= self._n:
                    slot -= self._n
            else:
                self.has_moved = True
            slot = self._order[slot]
            start += 2
            buf = self._buffers[slot]
        else:
            buf = self._tx
        if HAS_SLICES:
            buf[4:pos] = topic
            buf[start:n] = msg
        else:
            pack_into("256s", buf, 4, topic)  # as packet.copy()
            pack_into("256s", buf, start, msg)
        buf[0] = 0x30 | flags
        buf[1] = n - 2
        buf[2] = 0
        buf[3] = pos - 4
        if section:
            buf[start - 1] = 0
        if packet_id:
            buf[pos] = packet_id >> 8
            buf[pos + 1] = packet_id & 255
            if self._is_putting and not self.store.put(slot, packet_id, flags >> 1, buf, n, True):
                return -_FULL
            self._waits[slot] = _SENT_AS[flags]
            self._ids[slot] = self.last_id = packet_id
            self.count = count + 1
        self.stats.sent += 1
        self._tx_at = self.now
        error = start = None
        try:
            start = self.write(buf, 0, n)
            if start == n:  # where Ctrl-C comes in
                return packet_id
        except BaseException as reason:
            error = reason
        self.keep(buf, n, n - (start or 0))
        if error:
            self.failed(error, flags)
        return packet_id

    def keep(self, buf, end, left):
        """Of what was written, the last `left` bytes before `end` of `buf` wait."""
        self.out = buf
        self.end = end
        self.left = left
        self._stuck_at = 0

    def _check(self, topic):
        name = as_bytes("topic", topic)
        check(name)  # 31-3.3-WILD
        # What cannot change need not be checked again.
        self._checked = topic if topic.__class__ is bytes else self
        self._topic_end = len(name) + 4
        return name

    def lock(self, is_locked):
        """While it is locked, nothing is accepted: accept() says BUSY."""
        self._is_locked = is_locked
        # With 0 nothing takes the fast way.
        self._short = 0 if is_locked else min(self._size, 129)
        self._fast = 0
        self.is_due = True

    def _accept_slowly(self, topic, msg, flags):
        # The general way: the message enters the ring; next() sends it.  Entered with the
        # heap locked.
        heap_unlock()
        if self._is_locked:
            return -_BUSY
        n = self._length_of(msg, flags)
        if size_of(n) > self._size:
            return -_TOO_LARGE
        if flags < 2:
            if not (self.left or self.state != _ONLINE or self.mqueue_store_qos0 and self.unsent):
                # Kept nowhere: at QoS 0 it goes at once or waits its turn.
                self.stats.sent += 1
                heap_lock()
                n = self._encode(self._tx, n, topic, msg, flags, 0)
                self._write_out(self._tx, n)
                return 0
            if not self.mqueue_store_qos0:
                return -_FULL
        count = self.count
        if count - self.inflight() >= self.places() or count >= self._n:
            return -_FULL
        packet_id = 0
        if flags > 1:
            packet_id = self.last_id + 1
            if packet_id >= self._id_end:
                packet_id = self._next_id()
        slot = self._slot(count)
        buf = self.buffer_of(slot)
        heap_lock()
        n = self._encode(buf, n, topic, msg, flags, packet_id)
        if self._is_putting and not self.store.put(
            slot, packet_id, flags >> 1, buf, n, self.state == _ONLINE
        ):
            return -_FULL
        self.last_id = packet_id or self.last_id
        self._ids[slot] = packet_id
        self._waits[slot] = _SENT_AS[flags] & _WAITS
        self.count = count + 1
        self.unsent += 1
        self._fast = 0
        self.is_due = True
        # Else the messages of one poll() share a commit(), or what is to go first may be too old.
        if self.state == _ONLINE and not (self.store.is_deferred or self.aged):
            try:
                self.next()
            except Exception:
                pass  # of the store, and not for this; again with poll(), which tells
        return packet_id

    def buffer_of(self, slot):
        """-> where the packet in `slot` is encoded, to be used: if what stands there is half
        written, it goes on from another place."""
        buf = self._buffers[slot]
        if self.out is buf and self.left:
            pack_into(self._format, self._tx, 0, buf)
            self.out = self._tx
        return buf

    def _length_of(self, msg, flags):
        # Of the body of a PUBLISH.
        return self._topic_end + len(msg) - (0 if flags > 1 else 2)

    def _encode(self, buf, length, topic, msg, flags, packet_id):
        # A PUBLISH whose body has `length` bytes -> its end.  Entered with the heap locked.
        heap_unlock()
        pos = write_header(buf, _PACKET_PUBLISH | flags, length)
        pos = write_string(buf, pos, topic)
        if packet_id:  # 31-3.3-IDQOS
            pos = write_number(buf, pos, packet_id)
        return copy(buf, pos, msg)

    def places(self):
        """-> how many messages may wait: in the queue or, on a connection, for the window."""
        room = self.window - self.inflight() if self.state == _ONLINE else 0
        return room if room > self._queue else self._queue

    def _next_id(self):
        # 31-2.4-ID, MQTT-4.3.2-1, MQTT-4.3.3-1: 1 to 65535, none that is in use.  All
        # ids are looked at only after those free in a row are used up: once in a lap, where it
        # takes the square of what is in flight there.
        for i in range(self._n):
            if not self._waits[i]:
                self._ids[i] = 0
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

    def inflight(self):
        """-> messages that went out and wait for an answer, on this connection or not."""
        k = self.count - self.unsent
        while k < self.count and self._waits[self._slot(k)] & _WAS_SENT:
            k += 1
        return k

    # --- what leaves next --------------------------------------------------------------------

    def next(self):
        """Is there a packet to write?  Then it stands in `out`.  Raises MQTTError by the
        store, with nothing lost."""
        if self.left:
            return True
        # Nothing overtakes its record.
        self.commit()
        if self.state != _ONLINE:
            return False
        if self._owed:
            self._release()
        n = _ACKS_BYTES - self.room
        if n:
            # MQTT-4.6.0-2, -3: answers leave in the order in which they were caused.
            buf = self._acks
            self._acks = self._spare_acks
            self._spare_acks = buf
            self.room = _ACKS_BYTES
            # Written out here: two calls would be a twentieth of a received message.
            self.out = buf
            self.end = self.left = n
            self._tx_at = self.now
            self._stuck_at = 0
            if not (self.unsent or self.request or self._owed or self.aged):
                self.is_due = False
                self._fast = self._short
            return True
        if self.is_ending and (self.unsent or self.request or self.aged):
            return False
        if self.request and not self._is_requested:
            return self._send_request()
        n = self.unsent
        if n:
            n = self.count - n
            if n < self.window or self._waits[self._slot(n)] & _WAS_SENT:
                return self._send(self._slot(n))
        else:
            self._fast = self._short  # all has gone out
        self.is_due = False
        return False

    def write_first(self, packet):
        """Write a whole packet before all else; nothing may be half written."""
        self._write_out(packet, len(packet))

    def _write_out(self, buf, n):
        self.keep(buf, n, n)
        self._tx_at = self.now
        return True

    def _send(self, slot):
        # The message in `slot` is next in the ring.
        waits = self._waits[slot]
        if self.count == self.unsent and not waits & _WAS_SENT:
            self.has_moved = True
        if waits & _WAITS >= _OWE_PUBREL:
            # 31-3.6, MQTT-4.3.3-6: PUBREL only, never PUBLISH again.
            self.unsent -= 1
            self._waits[slot] = waits & ~(_WAITS | _MAYBE) | _OWE_PUBREL
            self._owed += 1
            return self.next()
        buf = self._buffers[slot]
        n = None
        if self._is_putting:
            n = self.store.get(slot, buf)  # if it raises, its turn is still to come
        self.unsent -= 1
        if n == 0:
            self.refuse(slot, _JOURNAL)
            return False
        n = end_of(buf)
        if waits & (_WAS_SENT | _MAYBE):
            buf[0] |= _DUP  # 31-2.1-DUP
            self.stats.retried += 1
        else:
            buf[0] &= ~_DUP
            self.stats.sent += 1
        if waits & _AGED:
            self.aged -= 1
        if waits & _WAITS:
            self._waits[slot] = waits & ~(_AGED | _MAYBE) | _WAS_SENT
        else:
            self.remove(self.count - self.unsent - 1)  # 31-4.1-Q0: sent once, no answer awaited
        return self._write_out(buf, n)

    def rewind(self):
        """Send all in flight again, in order: a time-out, or a new connection."""
        self.unsent = self.count
        self._owed = self._fast = 0
        self._is_requested = False
        self.is_due = True

    def remove(self, k):
        """The message with index `k` is done or given up -> its packet id."""
        order = self._order
        i = (self.first + k) % self._n
        slot = order[i]
        if self._is_putting:
            self.store.remove(slot)
        if k >= self.count - self.unsent:
            self.unsent -= 1
            if self._waits[slot] & _AGED:
                self.aged -= 1
        # It becomes the oldest, and goes at one stroke: whenever Ctrl-C comes, all others
        # are here, in their order.
        while k:
            k -= 1
            before = (self.first + k) % self._n
            order[i] = order[before]
            order[before] = slot
            i = before
        self._waits[slot] = 0
        self.first = (i + 1) % self._n
        self.count -= 1
        return self._ids[slot]

    # --- what comes --------------------------------------------------------------------------

    def received(self, n):
        """`n` bytes were read to `framing.into` -> 0, HANDLED, MESSAGE, OVERSIZE,
        ACCEPTED, or the code of an error."""
        head = self._head
        if n == 4 and head[1] == 2:
            # The fast way through the rest, for what most often comes: the answer that the
            # oldest message waits for.  It is all in `head`, as of two bytes nothing is left.
            first = head[0]
            slot = self._order[self.first]
            if (
                self._waits[slot] & ~(_RELEASED | _OLD) == first + _WAS_SENT
                and not first & 15  # or it looks like one that was not sent
                and first & 0x30 != _DONE  # nor is it _OWE_PUBREL
                and self.state == _ONLINE
                and self._ids[slot] == head[2] << 8 | head[3]
            ):
                if first == _PACKET_PUBREC:
                    self._on_first_pubrec(slot)
                    return HANDLED
                if self._is_putting:
                    self.store.remove(slot)
                if self.unsent:
                    if self.unsent == self.count:
                        self.unsent -= 1
                    self.is_due = True
                # It goes at one stroke: Ctrl-C comes in at jumps.
                n = self.count - 1
                if n:
                    first = self.first + 1
                    if first == self._n:
                        first = 0
                    self.has_moved = True
                    self._waits[slot] = 0
                    self.first = first
                    self.count = n
                    return HANDLED
                self.has_moved = self.request is not None  # else nothing is timed
                self._waits[slot] = 0  # the next one takes its place
                self.count = 0
                return HANDLED
        n = self._take(n)
        if not n:
            return 0
        framing = self.framing
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
            n = self._take(0)
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
            self.on_ack(first, framing.field)
        return HANDLED

    def on_ack(self, first, packet_id):
        """PUBACK, PUBREC or PUBCOMP by its first byte; a stray changes nothing."""
        slot = self._find(packet_id)
        waits = self._waits[slot] if slot >= 0 else 0
        waits = waits & _WAITS if waits & _WAS_SENT else 0
        if waits and slot == self._order[self.first]:
            self.has_moved = True  # what is timed is the oldest message
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
                self._answer(_PACKET_PUBREL, packet_id)  # of nothing that is known
        elif waits == _WAIT_PUBCOMP:
            self._owe(slot)  # PUBREC again: so is its PUBREL

    def _find(self, packet_id):
        # -> slot of the message with this id, -1 if there is none.
        if packet_id:
            for slot in range(self._n):
                if self._ids[slot] == packet_id and self._waits[slot]:
                    return slot
        return -1

    def _index(self, slot):
        k = 0
        while self._slot(k) != slot:
            k += 1
        return k

    def _on_first_pubrec(self, slot):
        # Of the oldest message: at no level another PUBREL goes before its own.
        self.has_moved = True
        if self.unsent or self._owed or self.room <= 0:
            return self._on_pubrec(slot)
        if self._is_putting:
            self.store.pubrec(slot)
        self._waits[slot] = _WAIT_PUBCOMP | _RELEASED | _WAS_SENT
        n = -1
        # `_fast` is 0 while anything precedes it, and of several messages the PUBRELs share
        # a write.
        if (
            self._fast
            and self.count == 1
            and not (self._is_putting or self.left or self.is_shared)
        ):
            # It is the PUBREC but for its first byte.
            head = self._head
            head[0] = _PACKET_PUBREL
            n = self.write(head, 0, 4)
            if n == 4:
                self._tx_at = self.now
                return
        self._answer(_PACKET_PUBREL, self._ids[slot])
        if n != -1:  # TLS has to be given the same bytes, and no other answer with them
            self.next()
            self.left -= n or 0
            self.is_due = True

    def _on_pubrec(self, slot):
        if self._is_putting:
            self.store.pubrec(slot)
        self._owe(slot)

    def _owe(self, slot):
        self._waits[slot] = self._waits[slot] & ~_WAITS | _OWE_PUBREL
        self._fast = 0  # no message overtakes it
        self.is_due = True
        if not self.unsent or self._index(slot) < self.count - self.unsent:
            # Else when its turn comes.
            self._owed += 1
            if self.room > 0 and (self.level > 3 or slot == self._order[self.first]):
                self._release_one(slot)  # MQTT-4.6.0-4: in the order of the PUBRECs

    def _release(self):
        # Write the PUBRELs that are owed, as far as there is room.
        k = 0
        while k < self.count - self.unsent and self._owed and self.room > 0:
            slot = self._slot(k)
            waits = self._waits[slot] & _WAITS
            if waits == _WAIT_PUBREC and self.level == 3:
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
            if self.level == 3:
                first |= _DUP
        self._answer(first, self._ids[slot])

    def _answer(self, first, packet_id):
        # Owe a PUBACK, PUBREC, PUBREL or PUBCOMP.
        acks = self._acks
        n = _ACKS_BYTES - self.room
        acks[n] = first
        acks[n + 1] = 2
        acks[n + 2] = packet_id >> 8
        acks[n + 3] = packet_id & 255
        self.room -= 4
        self.is_due = True
        self._fast = 0  # no message overtakes an answer

    def _on_publish(self, first):
        framing = self.framing
        if framing.is_oversize:
            if not self.message.skip(first, framing):
                return _PROTOCOL
        elif not self._read(first, framing.field, framing.length):
            return _PROTOCOL
        if first & 4 and not self._is_new(self.message.packet_id):
            return HANDLED
        if framing.is_oversize:
            self.stats.oversize += 1
            return OVERSIZE
        self.stats.received += 1
        return MESSAGE

    def _is_new(self, packet_id):
        # Is a QoS 2 message to be handed over?  Else it is answered here, or not taken.
        if not (self.held.count or self.is_starved):
            return True
        if self.held.find(packet_id) >= 0:  # MQTT-4.3.3-10
            self.stats.duplicates += 1
            self.store.hold(packet_id)  # that may have failed when it was handed over
            self._answer(_PACKET_PUBREC, packet_id)
            return False
        if self.is_starved or not self.held.has_room(packet_id):
            # RT-AWAITREL: not taken, so the broker has to send it again, and none
            # after it, or it would come out of its order.
            self.is_starved = True
            self._wake_at = ticks_add(self.now, -1)
            self.stats.refused += 1
            return False
        return True

    def acknowledge(self, qos, packet_id, now):
        """A message was handed over: from `now` on it is ours (MQTT-4.3.2-4, MQTT-4.3.3-8)."""
        if qos == 2:
            self.held.add(packet_id, now)
            self.store.hold(packet_id)  # if it raises, it comes again and is a repetition
        self._answer(qos + 3 << 4, packet_id)  # PUBACK or PUBREC

    def _on_pubrel(self, packet_id):
        if not self.held.remove(packet_id):
            return _AWAITING_REL
        self._answer(_PACKET_PUBCOMP, packet_id)  # MQTT-4.3.3-11: known or not
        return HANDLED

    # --- subscriptions -----------------------------------------------------------------------

    def ask(self, request, filters, known):
        """Send the request (filters, packet, place of its id, room for the answer's codes),
        once it is free to go; from now on `filters`, a request for each, are to be known to
        the broker, as the first `known` of them are."""
        self.filters = filters
        self._known = known
        self._asked = len(filters)
        self._begin_request(request)

    def _begin_request(self, request):
        self.last_id = self._ids[-1] = self._next_id()
        self.request = request
        packet = request[1]
        packet[0] &= ~_DUP  # of another connection
        write_number(packet, request[2], self.last_id)
        self._is_requested = self._was_requested = False
        self.is_due = True

    def _ask_next(self):
        # Filters that the broker may not know are sent, one by one.
        if self._asked < len(self.filters):
            self._asked += 1
            self._begin_request(self.filters[self._asked - 1])

    def forget(self, names):
        """The broker refused these filters."""
        self.filters = [one for one in self.filters if one[0][0] not in names]
        self._known = self._asked = len(self.filters)

    def _send_request(self):
        packet = self.request[1]
        if self._was_requested:
            if self.level == 3:
                packet[0] |= _DUP  # 31-2.1-DUP, RT-OBJECTS
        elif self.count == self.unsent:
            self.has_moved = True
        self._was_requested = self._is_requested = True
        return self._write_out(packet, len(packet))

    def _on_request_ack(self, first, at=0):
        # The answer's codes begin at `at` behind its id.
        framing = self.framing
        request = self.request
        if not request or framing.field != self._ids[-1]:
            return HANDLED  # stray: it answers no request of this connection
        self._ids[-1] = 0
        self.request = None
        self._is_requested = False
        self.has_moved = True
        codes = request[3]
        if (first ^ request[1][0]) & 0xF0 != 0x10 or framing.length - 2 - at != len(codes):
            return _PROTOCOL
        for k in range(len(codes)):
            codes[k] = framing.rx[at + k]  # 31-3.9-SUBACK: in order
        self._known = self._asked
        self._ask_next()
        return HANDLED

    # --- time --------------------------------------------------------------------------------

    def tick(self, now, handled):
        """It is `now`, and `handled` packets came since the last call -> 0, or 1 if there
        is something to write or to give up, or the code of an error."""
        if self.has_moved:
            self.has_moved = False
            self._moved_at = now
            self._tries = 0
        self.now = now
        if handled:
            self.rx_at = now
        if (self._wake_at - now) & _NOT_SOON:
            return self._check_timers(now)
        return self.is_due

    def wait(self, now):
        """The stream takes no more `now`: from then on it has to go on in time."""
        if self.left != self._stuck_at:
            self._stuck_at = self.left
            self._tx_at = now  # slow, but it goes on
        self.is_due = True
        self._wake_at = ticks_add(now, -1)

    def _check_timers(self, now):
        self.drowse(now)
        self.commit()  # before a ping, which may get stuck and so keep next() from it
        if self.left:
            # A packet waits for room in the stream: does it wait for too long?
            self.wait(now)
            self._moved_at = now  # 31-4.2-RETRY: timed from when it is out
            if ticks_diff(now, self._tx_at) >= self.timeout_ms:
                return _TIMEOUT
        if self.is_starved and not (self.held.count or self.left or self.room < _ACKS_BYTES):
            return _AWAITING_REL  # RT-AWAITREL: what was not taken comes again only then
        if self._retry_in(now, 1) <= 0:
            self.rewind()
            self._moved_at = now
            if self._tries < _MAX_TRIES:
                self._tries += 1
        # The stream may have been lost in the same poll().
        if self.state and not self.left and self._ping_in(now, 1) <= 0:
            if self.is_pinging:  # 31-2.2-KATIMEOUT
                return _TIMEOUT
            self.ping()
        # No interval is under a second, so none that begins later is missed.
        most = 0 if self.is_starved or self.left else self._due_in(now, _WAKE_MS)
        self._wake_at = ticks_add(now, most - 1 if most > 0 else -1)
        return 1

    def drowse(self, now):
        """It is `now`; all that there is to do without a connection."""
        self.now = now
        held = self.held
        while held.count and held.expires_in(now, self.held_ms) <= 0:  # RT-AWAITREL-T
            held.expire()

    def due_in(self, now):
        """Ticks until `tick()` has work; what arrives meanwhile waits.  At most a day."""
        if self.left or self.is_due or self.is_starved and not self.held.count:
            return 0
        if self.has_moved:  # as in tick(), which no call is to make slower
            self.has_moved = False
            self._moved_at = now
            self._tries = 0
        now = self._due_in(now, _DAY_MS)
        return now if now > 0 else 0

    def _due_in(self, now, most):
        most = self._retry_in(now, self._ping_in(now, most))
        held = self.held
        if held.count:
            most = min(most, held.expires_in(now, self.held_ms))
        return self.expires_in(now, most)

    def _retry_in(self, now, most):
        # 31-4.2-RETRY: the time-out doubles with each try that brings nothing.
        if self.retry_ms and (self.count > self.unsent or self._is_requested):
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
                ticks_diff(now, self._tx_at), ticks_diff(now, self.rx_at)
            )
        return now if now < most else most

    def ping(self):
        """Have a PINGREQ sent; nothing else may wait to be written."""
        if not self.is_pinging:
            self._ping_at = self.now  # MQTT: a later one moves no deadline
        self.is_pinging = True
        self.stats.pings += 1
        self.write_first(_PINGREQ)

    # --- what waits too long -----------------------------------------------------------------

    def expire_at(self, packet_id, ticks):
        """The message accepted last, with this id, may be given up at `ticks`, if it still
        waits then."""
        slot = self._slot(self.count - 1)
        if self.unsent and self._ids[slot] == packet_id and not self._waits[slot] & _WAS_SENT:
            self._expiry[slot] = ticks
            self._waits[slot] |= _AGED
            self.aged += 1

    def expires_in(self, now, most):
        """Ticks until the first waiting message is too old, `most` at most."""
        k = self.count - self.unsent if self.aged else self.count
        while k < self.count:
            slot = self._slot(k)
            if self._waits[slot] & _AGED:
                left = ticks_diff(self._expiry[slot], now)
                if left < most:
                    most = left
            k += 1
        return most

    def refuse(self, slot, reason):
        """The message in `slot` is to be given up, as what is too old is."""
        waits = self._waits[slot]
        if not waits & _AGED:
            self.aged += 1
        self._waits[slot] = waits & ~_WAITS | _DONE | _AGED
        self._expiry[slot] = -reason
        self.is_due = True

    def find_expired(self, now):
        """-> index of a message to be given up, -1 for none; + 65536 times the reason, if it
        is not too old."""
        k = 0 if self.aged else self.count
        while k < self.count:
            slot = self._slot(k)
            ticks = self._expiry[slot]
            if self._waits[slot] & _AGED and (ticks < 0 or ticks_diff(ticks, now) <= 0):
                if k < self.count - self.unsent:
                    self.aged -= 1
                return k - (ticks << 16 if ticks < 0 else 0)
            k += 1
        return -1
