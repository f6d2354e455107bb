"""umqtt31: a small MQTT client that allocates nothing while it works and loses nothing.

    from umqtt31 import MQTTClient, MQTTError

MQTT 3.1 (level 3) and 3.1.1 (level 4), QoS 0 to 2 both ways.  All else is an option: a module
that costs nothing before a program imports it.  docs/reference/client.md lists them.
"""

# Theory of operation.
#
# Messages out.  A message that publish() accepts is encoded at once, as the packet that
# goes out, at the tail of one ring of bytes.  Five bytes stand in front of each packet:
#
#     state | size, 2 bytes | packet id, 2 bytes | packet ...
#
# This is an entry.  `state` is the first byte of the answer that it waits for (PUBACK, PUBREC,
# PUBCOMP), _OWED if its PUBREL is to go out, _SPOILT if the store could not give it back as
# it was, and 0 once it is done; + _AGAIN if what goes out for it may have gone out before.
# Entries stand in the order of publish():
#
#     _head                      _next                     _tail
#      | went out, no answer yet  | are to go out           | free
#
# A new connection and a time-out set _next back to _head: all goes out again, in order, with
# DUP, and nothing new before it.  Of what is to go out, `_again` entries went out before; the
# window does not hold these back.  PUBREC makes PUBCOMP what the entry waits for, and when its
# turn comes again its PUBREL goes out in place of the packet.  The ring is given back from its
# head, so packet ids, which count up, never meet.
#
# With a store, what finds no room in the ring lies in the store alone: `_behind` entries
# behind the tail.  Each comes into the ring when its turn comes.
#
# Answers (PUBACK, PUBREC, PUBREL, PUBCOMP) are collected in _acks and leave before all
# else.  No more is read than there is room for answers, and an answer is never longer than
# what caused it, so that room cannot run out.
#
# What is being written is _left bytes of _out, from _at on.  A stream may take none or a
# part of them.  Until they are gone nothing else is begun, and the same bytes are offered
# again, as TLS demands.
#
# Messages in.  _read() reads once, as much as there is, to the start of _rx; _take()
# handles the packets in it in place, one by one.  Of a packet that is not whole the start is
# moved to the start of _rx, and only what it lacks is read.  One that cannot get whole, as
# it is larger than the buffer, is passed over but for what its acknowledgement needs.  A
# message is acknowledged after its handler returned.  QoS 2 ids wait in _held for their
# PUBREL: a PUBLISH with such an id is a repetition.
#
# Time.  _wake is the next moment at which poll() has something to do that nobody caused.
# Whatever begins to be timed sets it to now, and tick() finds the next one.
#
# MicroPython.  Between two connections nothing here makes an object, except an error.  A frame
# of more than 11 words comes from the heap, unless the heap is locked.  So the caller of a
# large function that runs for each message locks the heap, and the function unlocks it first.
# pack_into() with a fixed width copies without a slice on every version.  It fills the rest
# of the width with zeros, so these bytes have to be free.

from micropython import const, heap_lock, heap_unlock  # isort: skip

import random

# MicroPython finds a name of the module faster than a builtin.
from builtins import bytes, int, isinstance, len, max, min, str
from io import BytesIO
from struct import pack_into
from time import sleep_ms, ticks_add, ticks_diff, ticks_ms

__version__ = "0.1.0"

_PUBLISH = const(0x30)
_PUBACK = const(0x40)
_PUBREC = const(0x50)
_OWED = const(0x60)
_PUBREL = const(0x62)  # 31-3.6-PUBREL: carries the QoS bits 01
_PUBCOMP = const(0x70)
_SUBSCRIBE = const(0x82)
_UNSUBSCRIBE = const(0xA2)
_AGAIN = const(8)  # the DUP bit of a packet, too
_SPOILT = const(1)
_ENTRY = const(5)  # bytes in front of the packet of an entry
_PIECE = const(64)
_MOST_ACKS = const(132)  # bytes of answers that may wait while packets are handled
_BEHIND = const(69)  # bytes of the receive buffer behind the largest body
_SET = const(30)  # ids of a set: a small integer has no more bits on a 32-bit port

# Codes of MQTTError; the broker's own are 1 to 255.
_UNAVAILABLE = const(3)
_NETWORK = const(256)
_TIMEOUT = const(257)
_CLOSED = const(258)
_PROTOCOL = const(259)
_TOO_LARGE = const(260)
_FULL = const(261)
_JOURNAL = const(262)
_BUSY = const(263)
_AWAITING_REL = const(264)
_REFUSED_FILTER = const(265)

_DAY_MS = const(86400000)

_PLAIN = (bytes, bytearray, memoryview)  # made here, as making a tuple allocates

# What a socket that is still connecting raises: EAGAIN, EINPROGRESS, EALREADY, ENOTCONN
# as numbered by Linux, macOS and lwIP.
_CONNECTING = const(b"\x0b\x23\x24\x25\x39\x6b\x72\x73\x77\x78\x80")


class MQTTClient:
    """An MQTT client in fixed memory.

    `client_id`: 1 to 23 characters at level 3; at level 4 up to 65,535 bytes, and none for clean
    sessions.  `port` 0: 1883, or 8883 with `ssl`, which is what `tls.context_of()` takes.
    `level`: 3 (MQTT 3.1) or 4 (3.1.1).  `keepalive`, `retry_interval` (0: only on a new
    connection; None: 30 at level 3, else 0), `await_rel_timeout`, `connect_timeout` and
    `max_pause` in seconds.  `buffer_size`: largest packet in bytes, both ways.  `max_inflight`
    messages may be sent and not yet acknowledged, and `max_mqueue_len` more may wait, as far as
    `queue_bytes` (64 for each) hold them; a largest one always finds room in an empty queue.
    `store`: None, or a `journal.Journal`, where what waits needs no `queue_bytes`.
    `max_awaiting_rel`: received QoS 2 messages that may wait for their PUBREL.  Raises
    ValueError, TypeError.
    """

    on_message = None  # handler(message), allocation-free
    on_oversize = None  # handler(topic_len, payload_len)
    on_drop = None  # handler(packet_id, reason): CLOSED, JOURNAL; options have more
    last_error = None  # why reconnect() has failed so far: an MQTTError
    _will = _opener = None  # few clients set them: those of the others stay smaller
    # By level: how CONNECT begins, the longest client id, seconds until what is not answered is
    # sent again.
    _levels = {3: (b"\x00\x06MQIsdp\x03", 23, 30), 4: (b"\x00\x04MQTT\x04", 65535, 0)}
    # Of level 5: properties behind their length.
    _request_section = _connect_section = _will_section = b""
    _goodbye = b"\xe0\0"
    _may_go = None  # a hook, see below
    _most_options = 2  # of a filter: its QoS
    _filters = ()  # what is subscribed to: (filter, as it is sent)
    # What connect() sets.  What each message needs is set in __init__(): it is found faster.
    _is_clean = _was_clean = False
    _is_present = True
    _error = _try_at = None
    _fails = _old = 0  # failed attempts; entries in the store alone, of an earlier life

    def __init__(
        self,
        client_id,
        server,
        port=0,
        user=None,
        password=None,
        keepalive=60,
        ssl=None,
        *,
        level=3,
        buffer_size=256,
        queue_bytes=None,
        store=None,
        max_inflight=4,
        max_mqueue_len=16,
        max_awaiting_rel=512,
        await_rel_timeout=300,
        retry_interval=None,
        connect_timeout=10,
        max_pause=30,
        **options,
    ):
        if options:
            raise complaint("option", sorted(options)[0])
        levels = self._levels
        check_range("level", level, min(levels), max(levels))
        begin, longest, retry = levels[level]
        client_id = as_text("client_id", client_id)
        if retry_interval is None:
            retry_interval = retry
        # 31-3.1-CLIENTID: before a socket is opened.
        for row in (
            ("client_id", len(str(client_id, "utf-8")), level == 3, longest),
            ("port", port, 0, 65535),
            ("keepalive", keepalive, 0, 65535),
            ("buffer_size", buffer_size, 16, 16383),
            ("queue_bytes", queue_bytes or 0, 0, 1 << 18),
            ("max_inflight", max_inflight, 1, 16383),
            ("max_mqueue_len", max_mqueue_len, 0, 16383),
            ("max_awaiting_rel", max_awaiting_rel, 1, 65535),
            ("await_rel_timeout", await_rel_timeout, 1, 86400),
            ("retry_interval", retry_interval, 0, 3600),
            ("connect_timeout", connect_timeout, 1, 3600),
            ("max_pause", max_pause, 1, 3600),
        ):
            check_range(*row)
        if queue_bytes is None:  # room for as many small messages
            queue_bytes = 64 * max(16, max_inflight + (0 if store else max_mqueue_len))
        if password is not None and user is None and level < 5:
            raise complaint("password")  # 31-2.2-USER
        if ssl is not None and ssl != 0:  # {} is the port's own roots
            from .tls import context_of

            ssl = context_of(ssl)
        else:
            ssl = None
        self.level = level
        self.keepalive = keepalive
        self._timeout_ms = connect_timeout * 1000
        self._pause_ms = max_pause * 1000
        self._retry_ms = retry_interval * 1000
        self._held_ms = await_rel_timeout * 1000
        self._store = store
        self._commit = self._keep = None
        self._behind = self._extra = 0  # entries in the store alone; bytes of properties
        # What is to be written.
        self.buffer_size = buffer_size
        self._head = self._next = self._tail = 0
        self._rec = 0  # the entry whose PUBREC is to come next, or where to begin to look for it
        self._wrap = -1  # where the ring ends, while there are entries at its start again
        self.inflight = self.queued = self._again = 0
        self._window = max_inflight
        self._most_queued = max_mqueue_len
        self._valid = self  # the topic that was found valid last
        # The broker may hold ids that an earlier life used, and a reset forgot.
        self._id = random.getrandbits(16) % 65535
        self._acks_n = self._at = self._left = 0
        self._most_acks = _MOST_ACKS  # fewer where an option holds answers back
        # What comes.
        self._start = self._end = 0  # what is in _rx, not handled yet
        # Bytes that the packet at its start lacks at least, 0: it is whole; below 0: so many are
        # still to come of one that is larger than the buffer.
        self._lacks = 0
        self._places = max_awaiting_rel
        self._held_n = self._held_end = 0  # ids; numbers in use
        self._is_starved = False  # a message was not taken; none is before it comes again
        # The connection; _first: a whole packet that precedes messages.
        self.is_connected = self._is_busy = False
        self._stream = self._ping_at = self._request = self._first = None
        self._tries = -1  # time-outs since anything was answered; below 0: it was never online
        self._now = self._tx_at = self._rx_at = self._moved_at = 0  # ticks
        self._wake = ticks_ms()
        self._is_told = False  # does the broker know them?
        # Buffers are made last, most of them after the store's: so a smaller heap is enough.
        n = buffer_size + _ENTRY
        self._size = queue_bytes + buffer_size + n + _ENTRY
        # Behind the ring is room for one entry that goes to the store alone.
        self._ring = bytearray(self._size + (n + buffer_size if store else 0))
        # Received QoS 2 ids as sets of 30 neighbours, the oldest first: number of the set, a bit
        # for each id, ticks when it began.
        self._held = [0] * (3 * min(max_awaiting_rel, max(16, max_awaiting_rel // 15 + 2)))
        self._address = server, port or (8883 if ssl else 1883), ssl
        self._identity = begin, client_id, user, password
        if store is not None:
            self._recover(store, max_inflight + max_mqueue_len)
        self._rx = bytearray(buffer_size + _BEHIND)
        self._message = Message(self._rx)
        self._acks = self._out = bytearray(136)
        self._piece = bytearray(_PIECE)
        self.stats = Stats()
        width = "%ds" % buffer_size
        self._forms = ">BHHBBH" + width, ">BHHBHH" + width, width  # an entry up to the topic

    def _recover(self, store, most):
        if not hasattr(store, "fetch"):
            raise complaint("store")
        now = ticks_ms()
        # Of these, so many were sent; the packet id that was used last.
        self._old, self._again, packet_id, self._was_clean = store.open(
            self._identity[1], self.level, self.buffer_size, most,
            lambda packet_id: hold(self, packet_id, now), self._held, self._size,
        )  # fmt: skip
        self.inflight = self._again = min(self._again, self._window)
        self.queued = self._old - self._again
        self._behind = self._old
        if packet_id:
            self._id = packet_id
        self._commit = store.commit

    def set_callback(self, f):
        """Call `f(topic, msg)` with new bytes for each message, as umqtt.simple; None for none."""
        self.on_message = f and (lambda message: f(message.topic, message.payload))

    def set_last_will(self, topic, msg, retain=False, qos=0):
        """What the broker publishes when the connection is lost.  31-3.1-WILL"""
        check_range("keepalive, as a will needs one,", self.keepalive, 1, 65535)
        check_range("qos", qos, 0, 2)
        msg = as_bytes("msg", msg)
        if self.level < 4 and msg:
            check_range("will message: byte", max(msg), 0, 127)
        self._will = check_topic(self, topic), msg, 4 | qos << 3 | bool(retain) << 5

    # --- messages out -----------------------------------------------------------------------

    def publish(self, topic, msg, retain=False, qos=0):
        """Accept a message, without waiting -> packet id, 0 at QoS 0.

        QoS 1 and 2 wait in the queue while there is no connection.  Raises ValueError, TypeError;
        MQTTError: FULL, TOO_LARGE, CLOSED (QoS 0 offline), JOURNAL, and nothing changes then;
        NETWORK: the connection broke over a message of QoS 0.
        """
        if topic is not self._valid:
            topic = check_topic(self, topic)
        if msg.__class__ is not bytes:
            msg = as_bytes("msg", msg)
        if qos.__class__ is not int or not 0 <= qos < 3:
            check_range("qos", qos, 0, 2)  # 31-2.1-QOS3
        # A new local would need a frame from the heap: `qos` is the flags of the packet from here
        # on, `retain` the answer.
        qos = (not not retain) | qos << 1
        heap_lock()
        retain = accept(self, topic, msg, qos)
        return self._refuse(-retain, topic, msg, qos) if retain < 0 else retain

    def _refuse(self, code, topic, msg, flags):
        # An option may make room, and try again.
        if code == _NETWORK:
            tell(self)
        raise MQTTError(code)

    def _error_of(self, cause):
        # -> the MQTTError for a code, or for what the stream raised.
        place = self._address, self.level, self._is_present is None
        if isinstance(cause, int):
            return MQTTError(cause, None, self._error and place[2] and place)
        if isinstance(cause, MQTTError):
            return cause
        return MQTTError(_NETWORK, cause, place)

    # --- messages in ------------------------------------------------------------------------

    def poll(self, timeout_ms=0):
        """Do all that is due: receive, deliver, acknowledge, send, ping.

        Waits up to `timeout_ms` for a packet -> packets handled.  Raises what a handler raises
        (its message comes again on the next connection), and MQTTError when the link is lost:
        then call reconnect().
        """
        start = ticks_ms()
        while True:
            heap_lock()
            handled = step(self)
            if not self.is_connected and (self._error or not handled):
                tell(self)
            if handled or ticks_diff(self._now, start) >= timeout_ms:
                return handled
            sleep_ms(1)

    check_msg = poll  # by its name in umqtt.simple

    def wait_msg(self):
        """Wait for a packet, `connect_timeout` at most."""
        return self.poll(self._timeout_ms)

    def _handle(self, first, at, n):
        # A whole packet, no PUBLISH: its body is `n` bytes of _rx from `at` on.
        number = self._rx[at] << 8 | self._rx[at + 1]
        if not self.is_connected:
            if first & 0xF0 != 0x20 or n != 2:
                fail(self, _PROTOCOL)
            self._on_connack(number)
        elif n == 2 and number and first in b"\x40\x50\x70":
            on_ack(self, first, number)
        elif n == 2 and number and first & 0xF0 == 0x60:
            _unhold(self, number)
            owe(self, _PUBCOMP, number)  # MQTT-4.3.3-11: known or not
            if self._is_starved:
                self._wake = self._now
        elif first & 0xD0 == 0x90 and n > 1 and (n > 2) == (first < 0xA0):
            on_request_ack(self, first, number, at + 2)
        elif first & 0xF0 == 0xD0 and not n:
            self._ping_at = None
            self._wake = self._now
        else:
            fail(self, _PROTOCOL)

    # --- time -------------------------------------------------------------------------------

    def next_due_ms(self):
        """How long the program may sleep before poll() or reconnect() has work.

        What arrives meanwhile waits.  At most a day.
        """
        now = ticks_ms()
        if self.is_connected:
            # Something to write; a whole packet; an entry for which there is room.
            if (
                self._left or self._acks_n or self._first
                or self._start != self._end and not self._lacks
                or _has_next(self) and next_entry(self) >= 0
            ):  # fmt: skip
                return 0
            return max(0, _due_in(self, now) >> 2)
        if self._stream or self._try_at is None:
            return 0
        due = ticks_diff(self._try_at, now)
        return due if 0 < due <= self._pause_ms else 0  # more: it was due days ago

    def ping(self):
        """Send PINGREQ now; poll() raises if no answer comes within `keepalive`, unless 0."""
        if not self.is_connected:
            tell(self)
        push(self)
        if self.is_connected and not self._first:
            self._first = b"\xc0\0"
            self.stats.pings += 1
            self._wake = now = ticks_ms()
            if self._ping_at is None:  # another one moves no deadline
                self._ping_at = now
            push(self)

    # --- connecting -------------------------------------------------------------------------

    def connect(self, clean_session=True, stream=None):
        """Connect now -> session present (False at level 3, which cannot tell).

        A clean session gives up what is in flight, and what was accepted before the last reset.
        `stream`: any MicroPython stream, in place of a socket, or a callable that opens one, which
        reconnect() will use, too.  Allocates.  Raises MQTTError within `connect_timeout`.
        """
        if self._is_busy:
            raise MQTTError(_BUSY)
        if callable(stream):
            self._opener = stream
            stream = None
        elif stream:
            _check_stream(stream)
        packet = self._make_connect(clean_session)
        close(self)
        if clean_session:
            self._start_over()
        _begin(self, clean_session, packet, stream)
        while not _advance(self):
            sleep_ms(1)
        return self._is_present

    def reconnect(self, timeout_ms=0):
        """Connect, or go on connecting, in at most `timeout_ms` -> connected?

        Waits before each attempt a random time of up to 1 s, 2 s, 4 s ... `max_pause`.  Allocates.
        Raises MQTTError only if the broker refuses for good, or CONNECT is larger than
        `buffer_size`; else `last_error` says why it is not connected yet.
        """
        if self._is_busy:
            raise MQTTError(_BUSY)
        start = ticks_ms()
        while not self.is_connected:
            pause_ms = 1
            try:
                self._rest()
                if self._stream:
                    _advance(self)
                else:
                    if self._try_at is None:
                        # Full jitter: a fleet that lost its broker must not come back at once.
                        pause_ms = min(1000 << self._fails, self._pause_ms) + 1
                        self._try_at = ticks_add(ticks_ms(), random.getrandbits(24) % pause_ms)
                        self._fails = min(self._fails + 1, 12)
                    pause_ms = MQTTClient.next_due_ms(self)
                    if not pause_ms:
                        _begin(self, self._is_clean, self._make_connect(self._is_clean), None)
            except MQTTError as error:
                self.last_error = error
                code = error.code
                if code < _NETWORK and code != _UNAVAILABLE or code == _TOO_LARGE:  # of CONNECT
                    raise
            left_ms = timeout_ms - ticks_diff(ticks_ms(), start)
            if left_ms <= 0:
                break
            sleep_ms(min(pause_ms or 1, left_ms))
        return self.is_connected

    def _rest(self):
        # All that there is to do without a connection.
        if self._store:
            self._store.tidy()
        _expire_held(self, ticks_ms())

    def _make_connect(self, clean_session):
        # -> CONNECT, 31-3.1; raises where it cannot be sent.
        begin, client_id, user, password = self._identity
        flags = clean_session << 1
        body = self._connect_section + string(client_id)
        if not (client_id or clean_session or self.level > 4):
            raise complaint("client_id")
        if self._will:
            body += self._will_section + string(self._will[0]) + string(self._will[1])
            flags |= self._will[2]
        if user is not None:
            body += string(as_text("user", user))
            flags |= 0x80
        if password is not None:
            body += string(as_bytes("password", password))
            flags |= 0x40
        n = self.keepalive
        return self._packet(0x10, begin + bytes((flags, n >> 8, n & 255)) + body)

    def _packet(self, first, body):
        # -> a whole packet, as new bytes; TOO_LARGE if it is larger than the buffer.
        head = bytearray((first,))
        n = len(body)
        while n > 127:
            head.append(n & 127 | 128)
            n >>= 7
        head.append(n)
        if len(head) + len(body) > self.buffer_size:
            raise MQTTError(_TOO_LARGE)
        return head + body

    def _start_over(self):
        # 31-3.1-CLEAN: the session ends on this side, too.
        while self._old or self.inflight:
            at = next_entry(self)
            if at < 0:
                break
            self._next = entry_after(self, at)
            self.give_up(at, _CLOSED)
        self._next = self._rec = self._head
        if self._store:
            self._store.sync()  # what was told

    def give_up(self, at, reason, is_waiting=False):
        """The entry at `at` is given up, the next that is to go out or one that waits: count and
        tell it."""
        ring = self._ring
        packet_id = id_of(self, at)
        if self._store and ring[at] != _PUBLISH:
            self._store.note(_PUBACK, packet_id)
        if is_waiting or not self._again:
            self.queued -= 1
        else:
            self._again -= 1
            self.inflight -= 1
        ring[at] = 0
        self.stats.dropped += 1
        self._tell_drop(at, packet_id, reason)

    def _tell_drop(self, at, packet_id, reason):
        if self.on_drop:
            self.on_drop(packet_id, reason)

    def look_up(self, server, port):
        """-> the first of what socket.getaddrinfo() says; a program may put another here."""
        import socket

        return socket.getaddrinfo(server, port, 0, socket.SOCK_STREAM)[0]

    def _open(self):
        # Start to connect by TCP, waiting for nothing but the name look-up.
        import socket

        server, port, ssl = self._address
        if not server or not isinstance(server, (str, bytes)):
            raise complaint("server")
        family, kind, proto, _, address = self.look_up(server, port)
        sock = socket.socket(family, kind, proto)
        try:
            sock.setblocking(False)
            try:
                sock.setsockopt(6, 1, 1)  # TCP_NODELAY, for which not all ports have a name
            except OSError:
                pass
            try:
                sock.connect(address)
            except OSError as error:
                if error.errno not in _CONNECTING:
                    raise
            if ssl:
                from .tls import wrap

                sock = wrap(sock, ssl, server)
        except BaseException:
            sock.close()
            raise
        return sock

    def _on_connack(self, value):
        # 31-3.2-CONNACK, 31-2.2-RC
        code = value & 255
        if code:
            self._at = 0  # CONNECT changed nothing
            fail(self, code)
        is_present = self.level > 3 and value > 0
        if is_present and (value > 0x100 or self._is_clean):
            fail(self, _PROTOCOL)
        # A clean session ends with its connection, so what follows one is new, too; if it is
        # present, a CONNECT that was under way for long has made it.
        if self._was_clean:
            is_present = False
        if self._is_clean or self._was_clean or self.level > 3 and not is_present:
            _renew(self)
            if self._store and not self._is_clean:
                self._store.renew(False)
        self._was_clean = self._is_clean
        self._is_present = is_present
        self.is_connected = True
        if self._tries >= 0:
            self.stats.reconnects += 1
        self._fails = self._tries = 0
        self._wake = self._moved_at = self._now
        self._try_at = self.last_error = None
        if self._store:
            self._store.note(0x20, not self._is_clean)
        if not is_present:
            self._is_told = False  # at level 3 the broker cannot say
        if self._filters and not self._is_told:
            begin_request(self, self._all_filters(self._filters))

    def flush(self, timeout_ms):
        """Poll until nothing is in flight or queued -> is it safe to switch off?"""
        start = ticks_ms()
        while self.inflight or self.queued or self._left or self._acks_n:
            left_ms = timeout_ms - ticks_diff(ticks_ms(), start)
            if left_ms <= 0 or not self.is_connected:
                return False
            self.poll(min(left_ms, 50))
        if self._store:
            self._store.sync()
        return True

    def disconnect(self):
        """Say goodbye, so that no will is published, and close.  31-3.14-DISC"""
        try:
            if self.is_connected:
                self.is_connected = False  # no message goes out any more
                start = ticks_ms()
                self._first = self._goodbye
                while self._left or self._acks_n or self._first:
                    push(self)
                    if ticks_diff(ticks_ms(), start) >= self._timeout_ms:
                        break
                    if self._left:
                        sleep_ms(1)
        finally:
            close(self)
            self._error = None
            if self._store:
                self._store.sync()

    # --- subscriptions ----------------------------------------------------------------------

    def subscribe(self, topic, qos=0):
        """Subscribe to a filter, or to a list of (filter, QoS) -> list of granted QoS.

        Waits for the broker's answer, `connect_timeout` at most.  The filters are remembered
        and sent again on every connection, but where the broker says that it kept them.  Raises
        ValueError, TypeError, MQTTError: CLOSED, TOO_LARGE, TIMEOUT, REFUSED_FILTER.
        """
        if not isinstance(topic, (list, tuple)):
            topic = ((topic, qos),)
        return self._ask(_SUBSCRIBE, topic)

    def unsubscribe(self, topic):
        """Unsubscribe from a filter or a list of filters; waits for the answer."""
        if not isinstance(topic, (list, tuple)):
            topic = (topic,)
        return self._ask(_UNSUBSCRIBE, topic)

    def _ask(self, first, topics):
        # Send a request, and wait for its answer.
        if self._is_busy:
            raise MQTTError(_BUSY)
        request = self._make_request(first, topics)
        if not self.is_connected:
            raise MQTTError(_CLOSED)
        start = ticks_ms()
        is_asked = False
        while True:
            if not self.is_connected:
                tell(self)
            if not self._request:
                if is_asked:
                    return self._granted(request)
                is_asked = True
                self._send_request(request)
            if ticks_diff(ticks_ms(), start) >= self._timeout_ms:
                fail(self, _TIMEOUT)
            self.poll(1)

    def _make_request(self, first, topics):
        # -> (packet, room for the answer's codes, [(filter, as it is sent)])
        pairs = []
        section = body = self._request_section
        for name in topics:
            part = b""
            if first == _SUBSCRIBE:
                try:
                    name, qos = name
                except (TypeError, ValueError):
                    raise complaint("filters")
                check_range("qos", qos, 0, self._most_options)
                part = bytes((qos,))
            name = as_filter(name)
            part = string(name) + part
            pairs.append((name, part, section))
            body += part
        if not pairs:
            raise complaint("no filter")
        # UNSUBACK has codes at level 5 only.
        codes = len(pairs) if first == _SUBSCRIBE or self.level > 4 else 0
        return self._packet(first, b"\0\0" + body), bytearray(codes), pairs

    def _send_request(self, request):
        # No other one waits.  What it subscribes to is remembered from now on.
        names = []
        for pair in request[2]:
            names.append(pair[0])
        pairs = self._filters_but(names)
        if request[0][0] == _SUBSCRIBE:
            pairs += request[2]
            self._all_filters(pairs)  # TOO_LARGE if these are too many for one packet
        if not self._filters:
            self._is_told = True
        self._filters = pairs
        begin_request(self, request)

    def _filters_but(self, topics):
        # A loop, as a comprehension needs forty bytes more.
        pairs = []
        for pair in self._filters:
            if pair[0] not in topics:
                pairs.append(pair)
        return pairs

    def _all_filters(self, topics):
        # -> the request that subscribes to all of them.
        body = self._request_section
        for pair in topics:
            body += pair[1]
        return self._packet(_SUBSCRIBE, b"\0\0" + body), bytearray(len(topics))

    def _granted(self, request):
        # What the broker answered, None to UNSUBSCRIBE.
        whole, codes, pairs = request
        if codes and max(codes) > 2:
            names = []
            for k in range(len(pairs)):
                if codes[k] > 2:
                    names.append(pairs[k][0])
            self._filters = self._filters_but(names)
            raise MQTTError(_REFUSED_FILTER, (names, max(codes)))
        return None if whole[0] & 0x20 else list(codes)


# What the methods of MQTTClient do.  A function is found in half of the time of a method.


def check_topic(client, topic):
    """-> the topic as bytes.  What cannot change need not be checked again.  31-3.3-WILD"""
    name = as_bytes("topic", topic)
    most = 0
    for byte in name:
        if byte in b"\0#+":
            most = 256
        if byte > most:
            most = byte
    if most > 255 or not name:
        raise complaint("topic", name)
    if most > 127:
        as_text("topic", name)
    client._valid = topic if topic.__class__ is bytes else client
    return name


def accept(client, topic, msg, flags):
    """Encode a PUBLISH as the newest entry and have it written -> its packet id; below 0 an
    error's code.  Entered with the heap locked."""
    heap_unlock()
    topic_len = len(topic)
    extra = client._extra
    payload_len = len(msg)
    n = topic_len + payload_len + extra + 2
    packet_id = 0
    qos = flags & 6
    if qos:
        n += 2
        packet_id = client._id % 65535 + 1
    size = n + 2
    short, form, width = client._forms
    if n > 127:
        size += 1
        n = (n & 127 | 128) << 8 | n >> 7
    else:
        form = short
    if size > client.buffer_size:  # which two bytes of length are enough for
        return -_TOO_LARGE
    if qos:
        if client.queued >= client._most_queued and (
            not client.is_connected or client.queued + client.inflight >= client._window
        ):
            return -_FULL
    elif not (client.is_connected or client._keep):
        return -_CLOSED
    at = client._tail
    after = at + size + _ENTRY
    limit = client._head - 1 if at < client._head else client._size
    if client._behind or after + client.buffer_size > limit:  # as pack_into() fills
        # Nothing gets in front of what lies in the store.
        at = -1 if client._behind and (qos or client._keep) else _place(client, size + _ENTRY)
        if at < 0:
            if not (qos and client._store):
                return -_FULL
            at = client._size
        after = at + size + _ENTRY
    ring = client._ring
    # `qos` << 3 makes of it PUBACK, PUBREC.
    pack_into(
        form, ring, at,
        _PUBLISH + (qos << 3), size, packet_id, _PUBLISH | flags, n, topic_len, topic,
    )  # fmt: skip
    n = after - payload_len
    pack_into(width, ring, n, msg)
    if extra > 1:  # the byte of an empty section is 0 already
        client._add(at, n)
    if qos:
        n -= extra
        ring[n - 2] = packet_id >> 8
        ring[n - 1] = packet_id & 255
        if client._store and not client._store.put(
            ring, at, after - at, client.is_connected, at == client._size
        ):
            return -_FULL
        client._id = packet_id
        if at == client._size:
            client._behind += 1
            client.queued += 1
            return packet_id
    try:
        return _send(client, at + _ENTRY, size, packet_id)
    except BaseException as error:
        if packet_id and isinstance(error, MQTTError):
            close(client)  # the store's: this message is accepted, so poll() tells it
            client._error = error
        else:
            lose(client, error)
        return packet_id or -_NETWORK


def _send(client, at, n, packet_id):
    # Have the new packet of `n` bytes at `at` written, at once if nothing precedes it
    # -> as accept().
    if packet_id:
        client.queued += 1
        client._tail = at + n
    is_next = client.is_connected
    if is_next and (client._acks_n or client._left or client._first):
        # A new local would need a frame from the heap.
        is_next = client._behind - (client.stats.dropped << 8)
        _pump(client, ticks_ms())  # these come first, and behind them what is new
        # It may have brought a message of the store here, or on_drop has published.
        is_next -= client._behind - (client.stats.dropped << 8)
        is_next = not (packet_id or client._left or is_next)
    if packet_id:
        if not is_next or client._again or client.queued > 1 or client.inflight >= client._window:
            return packet_id
        # The fast way of what _load() and _pump() do.
        client.queued = 0
        client._next = at + n
        if not client.inflight:
            client._moved_at = None  # timed from the next poll() on
        client.inflight += 1
        if client._commit:
            client._commit()
    elif client._keep and (client._again or client.queued or not is_next):
        return client._keep(at - _ENTRY, at + n)
    elif not is_next:
        return -_FULL
    client.stats.sent += 1
    done = client._stream.write(client._ring, at, n) or 0
    client._tx_at = client._now
    if done < n:
        if not packet_id:  # it is passed over when its turn comes
            client._ring[at - _ENTRY] = 0
            if client._next == client._tail:
                client._next = at + n
            client._tail = at + n
        client._out = client._ring
        client._at = at + done
        client._left = n - done
        client._wake = client._tx_at = ticks_ms()
    return packet_id


def _place(client, n):
    # Make room for an entry of so many bytes at the tail -> where, -1 for nowhere.
    give_back(client)
    n += client.buffer_size
    at = client._tail
    limit = client._size
    if at < client._head:
        limit = client._head - 1
    elif at + n > limit and n < client._head:
        client._wrap = at
        if client._next == at:
            client._next = 0
        if client._rec == at:
            client._rec = 0
        client._tail = at = 0
        limit = client._head - 1
    return at if at + n <= limit else -1


def entry_after(client, at):
    """-> the entry behind the one at `at`."""
    ring = client._ring
    at += (ring[at + 1] << 8 | ring[at + 2]) + _ENTRY
    return 0 if at == client._wrap else at


def give_back(client):
    """Give the oldest entries back that are done, unless one of them may be half written."""
    ring = client._ring
    at = client._head
    while at != client._tail and not (ring[at] or client._left and client._out is ring):
        after = entry_after(client, at)
        if at == client._next:
            client._next = after
        at = after
        if not at:
            client._wrap = -1
    if at == client._tail:
        at = client._next = client._tail = 0
        client._wrap = -1
    client._head = client._rec = at


def next_entry(client):
    """-> the entry whose turn is next, fetched from the store if there; -1: none, no room."""
    ring = client._ring
    at = client._next
    while at != client._tail:
        # At level 5 a PUBREL may go out before its turn.
        if ring[at] and (ring[at] != _PUBCOMP or not client.is_connected):
            return at
        at = entry_after(client, at)
    client._next = at
    return bring(client)


def bring(client):
    """The oldest entry behind the tail comes into the ring -> where, -1 for nowhere."""
    at = _place(client, client.buffer_size + _ENTRY) if client._behind else -1
    if at >= 0:
        client._tail = at + client._store.fetch(client._ring, at)
        client._behind -= 1
        if client._old:
            client._old -= 1
        if not client._ring[at]:
            client._ring[at] = _SPOILT
    return at


def _rewind(client):
    # All in flight is to go out again.
    ring = client._ring
    at = client._head
    while at != client._next:
        if ring[at] and ring[at] & 0xF0 != _OWED:
            ring[at] |= _AGAIN
        at = entry_after(client, at)
    client._next = client._rec = client._head
    client._again = client.inflight


def on_ack(client, first, packet_id):
    """PUBACK, PUBREC or PUBCOMP by its first byte: 31-3.4-PUBACK, 31-3.7-PUBCOMP, MQTT-4.3.2-3,
    MQTT-4.3.3-5."""
    ring = client._ring
    at = client._rec if first == _PUBREC else client._head  # where it is expected
    if (
        ring[at] != first or ring[at + 4] != packet_id & 255
        or ring[at + 3] != packet_id >> 8 or at == client._next
    ):  # fmt: skip
        at = _find(client, first, packet_id)
        if at < 0:
            return
    if client._store:
        client._store.note(first, packet_id)
    if at == client._head:  # what is timed is the oldest message
        client._moved_at = client._now
        client._tries = 0
    state = ring[at]
    if first == _PUBREC:
        ring[at] = _OWED
        if state != first:
            pass  # when its turn comes
        elif client.level > 3 and at != client._rec:
            release_one(client, at)  # MQTT-4.6.0-4: in the order of the PUBRECs
        else:
            _release(client)
        return
    ring[at] = 0
    client.inflight -= 1
    if state != first:
        client._again -= 1
    elif client._next != at == client._head and not client._left:
        after = (ring[at + 1] << 8 | ring[at + 2]) + _ENTRY + at
        if after == client._wrap:
            after = 0
            client._wrap = -1
        client._head = after
        if client._rec == at:
            client._rec = after


def _find(client, first, packet_id):
    # -> the entry that an unexpected answer is for, -1 for none.
    give_back(client)
    ring = client._ring
    at = client._head
    state = went_out = 0
    while at != client._tail:
        if at == client._next:
            went_out = 0x28  # only what is to go out again, or its PUBREL
        if ring[at] and id_of(client, at) == packet_id:
            state = ring[at]
            if went_out and not state & went_out:
                state = 0
            break
        at = entry_after(client, at)
    if state & ~_AGAIN == first:
        return at
    if first != _PUBREC or state < _OWED:
        client.stats.strays += 1
        # No message has this id, unless one that lies in the store alone.
        if first == _PUBREC and not (state or client._old):
            owe(client, _PUBREL, packet_id)
    elif state == _PUBCOMP:
        ring[at] = _OWED | _AGAIN  # PUBREC again: so is its PUBREL
        release_one(client, at)
    return -1


def _release(client):
    # 31-4.3-STAGE: PUBRELs leave in the order of the PUBLISHes, as far as there is room.
    ring = client._ring
    at = client._rec
    while at != client._next and ring[at] != _PUBREC and client._acks_n < _MOST_ACKS:
        if ring[at] & 0xF0 == _OWED:
            release_one(client, at)
        at = entry_after(client, at)
    client._rec = at


def release_one(client, at):
    """Owe the PUBREL of the entry at `at`."""
    ring = client._ring
    again = ring[at] & _AGAIN
    ring[at] = _PUBCOMP
    if again:
        client.stats.retried += 1
        if client.level > 3:
            again = 0  # 31-2.1-DUP
    owe(client, _PUBREL | again, id_of(client, at))


def owe(client, first, packet_id):
    """Owe PUBACK, PUBREC, PUBREL or PUBCOMP; in order of their causes: MQTT-4.6.0-2, -3."""
    acks = client._acks
    n = client._acks_n
    acks[n] = first
    acks[n + 1] = 2
    acks[n + 2] = packet_id >> 8
    acks[n + 3] = packet_id & 255
    client._acks_n = n + 4


# --- the stream -----------------------------------------------------------------------------


def _check_stream(stream):
    if not hasattr(stream, "readinto"):
        raise complaint("stream")
    return stream


def push(client):
    """As _pump(), for callers that do not handle what the stream raises."""
    heap_lock()
    _try_pump(client)


def _try_pump(client):
    heap_unlock()
    try:
        _pump(client, ticks_ms())
    except BaseException as error:
        lose(client, error)


def _pump(client, now):
    # Write what waits, as far as the stream takes it.
    if client._commit:
        client._commit()  # no packet overtakes its record, and publish() may have left one
    while client._left or _load(client, now):
        n = client._stream.write(client._out, client._at, client._left)
        if not n:
            client._wake = now  # from now on it has to go on in time
            break
        client._at += n
        client._left -= n
        client._tx_at = now


def _load(client, now):
    # Choose what is written next -> is there anything?
    if client._acks_n:
        if client._out is not client._acks:
            client._out = client._acks
            client._at = 0
        client._left = client._acks_n - client._at  # what came while they were written
        if not client._left:
            n = client._acks_n
            client._acks_n = client._at = 0
            if n >= _MOST_ACKS:  # there was no room for all PUBRELs
                _release(client)
                return _load(client, now)
    if client._left:
        pass
    elif client._first:
        client._out = client._first
        client._at = 0
        client._left = len(client._out)
        client._first = None
    elif _has_next(client):
        _fetch(client, now)
        if client._acks_n:
            return _load(client, now)
    if client._left:
        client._tx_at = now
    return client._left


def _has_next(client):
    # Is it the turn of an entry?
    return (
        client.is_connected
        and (client._again or client.queued)
        and client.inflight - client._again < client._window
    )


def _fetch(client, now):
    # It is the next entry's turn.
    at = next_entry(client)
    if at < 0:
        return
    ring = client._ring
    state = ring[at]
    if state == _SPOILT:
        return client.give_up(at, _JOURNAL)  # on_drop may do anything
    if client._may_go and not client._may_go(at):
        return
    client._next = entry_after(client, at)
    if client._again:
        client._again -= 1
    else:
        client.queued -= 1
        if state != _PUBLISH:
            if not client.inflight:
                client._moved_at = now
            client.inflight += 1
    if state >= _OWED:
        # 31-3.6, MQTT-4.3.3-6: PUBREL only, never PUBLISH again.
        ring[at] = _OWED | state & _AGAIN
        if client.level > 3:
            release_one(client, at)
        else:
            _release(client)
        return
    if state & _AGAIN:
        ring[at + _ENTRY] |= _AGAIN  # 31-2.1-DUP
        client.stats.retried += 1
    else:
        ring[at + _ENTRY] &= 255 - _AGAIN
        client.stats.sent += 1
    ring[at] = 0 if state == _PUBLISH else state & ~_AGAIN  # 31-4.1-Q0
    client._out = ring
    client._left = ring[at + 1] << 8 | ring[at + 2]
    client._at = at + _ENTRY


# What a stream may raise; Mbed TLS's errors come as OSError and as ValueError.
_STREAM_ERRORS = (OSError, ValueError, MemoryError, ImportError)


def lose(client, cause):
    """What the stream raised ends it, unless it is still connecting.  So does what the store
    raised, as what was read may not be answered, and Ctrl-C, as part of a packet may be out."""
    if client._is_present is not None or (getattr(cause, "errno", 0) or 0) not in _CONNECTING:
        close(client)
        client._error = cause
    if isinstance(cause, MQTTError) or not isinstance(cause, _STREAM_ERRORS):
        client._error = None
        raise cause


def fail(client, code):
    """After an error the stream is always closed."""
    if client.level > 4:
        client._farewell(code)
    client._error = code  # with the heap locked there is no room, and poll() tells later
    close(client)
    tell(client)


def tell(client):
    """Raise what closed the connection."""
    raise client._error_of(client._error or _CLOSED)


def close(client):
    """What was half read or half written is gone with the stream."""
    stream = client._stream
    client.is_connected = client._is_starved = False
    is_begun = client._at and client._is_present is None
    if client._request or is_begun:
        client._is_told = False  # it has no answer, or CONNACK of a new session may be lost
    client._stream = client._first = client._ping_at = client._request = None
    if is_begun and client._is_clean:
        client._was_clean = True
        _renew(client)
    # PUBRELs that never went out are owed again.
    acks = client._acks
    n = client._at + 3 & ~3 if client._out is acks else 0
    while n < client._acks_n:
        if acks[n] & 0xF0 == 0x60:
            at = client._head
            while at != client._next:
                if id_of(client, at) == acks[n + 2] << 8 | acks[n + 3]:
                    if client._ring[at] == _PUBCOMP:
                        client._ring[at] = _OWED | acks[n] & _AGAIN
                at = entry_after(client, at)
        n += 4
    client._start = client._end = client._lacks = client._left = client._acks_n = client._at = 0
    client._out = acks
    _rewind(client)
    try:
        try:
            if stream:
                stream.close()
        finally:
            if client._commit:
                client._commit()  # many programs reset the board now
    except OSError:
        pass


def id_of(client, at):
    """-> packet id of the entry at `at`."""
    return client._ring[at + 3] << 8 | client._ring[at + 4]


# --- what comes -----------------------------------------------------------------------------


def step(client):
    """Handle the whole packets that are here or, if there is none, read; then write.
    -> packets handled.  Entered with the heap locked."""
    heap_unlock()
    if client._is_busy:
        raise MQTTError(_BUSY)
    client._now = now = ticks_ms()
    if client._moved_at is None:
        client._moved_at = now
    handled = 0
    if not client._stream:
        client._rest()
        return 0
    try:
        if client._start != client._end:
            handled = _take(client)
        # Bounded, so that a flood cannot keep the program from its own work.
        while handled < 64:
            is_more = _read(client)
            if client._start != client._end:
                handled += _take(client)
            if is_more is None or handled and not is_more:
                break
        if client._acks_n or client._left or client._first or client._again or client.queued:
            _pump(client, now)
        if client.is_connected and ticks_diff(client._wake, now) <= 0:
            tick(client, now)
        if client._store:
            client._store.tidy()
    except BaseException as error:
        if client._is_busy:  # a handler's
            client._is_busy = False
            try:
                if client._stream:
                    push(client)  # the answers to what came before it
            except MQTTError:  # the store's
                pass
            raise error
        if not client._stream:
            raise
        lose(client, error)
    return handled


def _read(client):
    # Read once -> did anything come (else None), and may there be more?
    if not client._stream or client._acks_n >= client._most_acks:
        return None
    into = client._rx
    have = client._end - client._start
    n = client.buffer_size + 4
    if have:
        # Only what the packet lacks that is here in part.
        client._message.copy(client._start, have, into)
        client._start = 0
        client._end = have
        into = client._piece
        n = min(client._lacks, _PIECE)
    got = client._stream.readinto(into, n)
    if got:
        client._rx_at = client._now
        if client._ping_at is not None and (have or client._lacks < 0):
            client._ping_at = None  # PINGRESP comes behind it, so this is an answer, too
            client._wake = client._now
        if have:
            pack_into("64s", client._rx, have, into)
        else:
            client._start = 0
        client._end = have + got
    elif got == 0:
        fail(client, _CLOSED)
    return got and got == n


def _take(client):
    # Handle the whole packets that are here, as far as there is room for answers -> how many.
    if client._lacks < 0:
        return _pass_over(client)
    rx = client._rx
    handled = 0
    while client._acks_n < client._most_acks:
        at = client._start
        pos = at + 2
        client._lacks = 1
        if pos > client._end:
            break
        size = rx[at + 1]
        if size > 127:
            if pos == client._end:
                break
            size += (rx[pos] << 7) - 128
            pos += 1
        if size > client.buffer_size:
            return handled + _large(client, at)
        if pos + size > client._end:
            client._lacks = pos + size - client._end
            break
        client._start = pos + size
        client._lacks = 0
        handled += 1
        if not client.is_connected:
            client._handle(rx[at], pos, size)
            handled = 64  # connect() calls no handler
            break
        if rx[at] >> 4 == _PUBLISH >> 4:
            if not client._message.read(rx[at], pos, size):
                fail(client, _PROTOCOL)
            deliver(client, True)
        else:
            client._handle(rx[at], pos, size)
    return handled


def _large(client, at):
    # A packet larger than the buffer began -> as _take().  31-2.1-LEN
    rx = client._rx
    first = rx[at]
    n = shift = 0
    while shift < 28:
        at += 1
        if at == client._end:
            return 0
        n |= (rx[at] & 127) << shift
        shift += 7 if rx[at] > 127 else 99
    if (
        shift < 99 or n <= client.buffer_size
        or first >> 4 != _PUBLISH >> 4 or not client.is_connected
    ):  # fmt: skip
        fail(client, _PROTOCOL)
    at += 3
    if at > client._end:
        client._lacks = at - client._end
        return 0
    if not client._message.read(first, at - 2, n):
        fail(client, _PROTOCOL)
    client._start = at
    client._lacks = 2 - n
    return _pass_over(client)


def _pass_over(client):
    # Of a message that is larger than the buffer only the packet id counts -> as _take().
    message = client._message
    at = client._start
    n = -client._lacks
    while n and at < client._end:
        n -= 1
        if message.qos and 0 <= n - message.payload_len < 2:
            message.read_id(client._rx[at])
        at += 1
    client._start = at
    client._lacks = -n
    if n:
        return 0
    deliver(client, False)
    return 1 + _take(client)


def deliver(client, is_whole):
    """Hand the message over, and owe its acknowledgement.  MQTT-4.3.2-4, MQTT-4.3.3-8"""
    message = client._message
    packet_id = message.packet_id
    qos = message.qos
    stats = client.stats
    if qos:
        if not packet_id:
            fail(client, _PROTOCOL)  # 31-2.4-ID
        if qos == 2 and not is_new(client, packet_id):
            return
    client._is_busy = True
    if is_whole:
        stats.received += 1
        if client.on_message:
            client.on_message(message)
    else:
        stats.oversize += 1
        if client.on_oversize:
            client.on_oversize(message.topic_len, message.payload_len)
    client._is_busy = False
    if message.qos:  # 0 if the handler refused it
        if qos == 2:
            hold(client, packet_id, client._now)
            if client._store:
                client._store.note(_PUBLISH, packet_id)
        if client._stream:  # else the handler closed it
            owe(client, qos + 3 << 4, packet_id)
    if not (is_whole or client.on_oversize):
        # It was acknowledged, or it would come for ever.  The error tells of it.
        client._is_busy = True  # as a handler's error
        raise MQTTError(_TOO_LARGE, message.payload_len)


def is_new(client, packet_id):
    """Is a QoS 2 message to be handed over?  Else it is answered here, or not taken."""
    if set_of(client, packet_id, 1) >= 0:  # MQTT-4.3.3-10
        client.stats.duplicates += 1
        if client._store:
            client._store.note(_PUBLISH, packet_id)
        owe(client, _PUBREC, packet_id)
        return False
    if (
        client._is_starved
        or client._held_n >= client._places
        or set_of(client, packet_id) < 0 and client._held_end == len(client._held)
    ):  # fmt: skip
        # RT-AWAITREL: not taken, so the broker has to send it again, and none after it, or
        # it would come out of its order.  When all places are free, the connection ends.
        client._is_starved = True
        client._wake = client._now
        client.stats.refused += 1
        return False
    return True


def set_of(client, packet_id, bit=0):
    """-> place in _held of the newest set for the id, of the one that has it if `bit` is 1; -1."""
    held = client._held
    k = client._held_end
    while k:
        k -= 3
        if held[k] == packet_id // _SET and held[k + 1] >> packet_id % _SET & bit == bit:
            return k
    return -1


def hold(client, packet_id, now):
    """Remember the id of a QoS 2 message, which is not held, until its PUBREL."""
    held = client._held
    k = set_of(client, packet_id)
    # All ids of a set are forgotten at once, so it takes new ones for a sixteenth of the time.
    if k < 0 or (
        ticks_diff(now, held[k + 2]) > client._held_ms >> 4 and client._held_end < len(held)
    ):
        k = client._held_end
        client._held_end = k + 3
        held[k] = packet_id // _SET
        held[k + 1] = 0
        held[k + 2] = now
    held[k + 1] |= 1 << packet_id % _SET
    client._held_n += 1


def _unhold(client, packet_id):
    # MQTT-4.3.3-12: from now on the id is a new message; an unknown id changes nothing.
    held = client._held
    k = set_of(client, packet_id, 1)
    if k < 0:
        return
    if client._store:
        client._store.note(_PUBREL, packet_id)  # if it raises, the id is still held
    held[k + 1] ^= 1 << packet_id % _SET
    client._held_n -= 1
    if not held[k + 1]:
        client._held_end -= 3
        while k < client._held_end:
            held[k] = held[k + 3]
            k += 1
        held[k + 1] = 0  # the store looks there, too


def _expire_held(client, now):
    # RT-AWAITREL-T: forget those of the oldest set when it waited so long.
    held = client._held
    while client._held_n and ticks_diff(now, held[2]) >= client._held_ms:
        packet_id = held[0] * _SET
        while not held[1] >> packet_id % _SET & 1:
            packet_id += 1
        _unhold(client, packet_id)


def on_request_ack(client, first, packet_id, at):
    """SUBACK or UNSUBACK: its codes stand in _rx from `at` on."""
    request = client._request
    if not request:
        return
    whole = request[0]
    codes = request[1]
    k = 2 + (whole[1] >> 7)  # behind one or two bytes of length
    if packet_id != whole[k] << 8 | whole[k + 1]:
        return  # it answers no request of this connection
    if (first ^ whole[0]) & 0xF0 != 0x10 or client._start - at != len(codes):
        fail(client, _PROTOCOL)
    for n in range(len(codes)):
        codes[n] = client._rx[at + n]  # 31-3.9-SUBACK: in order
    client._request = None
    # What was refused when it was sent again is asked on the next connection.
    if len(request) < 3:
        client._is_told = max(codes) < 128
    client._moved_at = client._now
    client._tries = 0


def begin_request(client, request):
    """Have a request written: (packet, room for the codes of its answer, ...)."""
    client._id = n = client._id % 65535 + 1
    client._request = request
    if client._first:
        client._ping_at = None  # PINGREQ did not go out, and this does in its place
    client._first = whole = request[0]
    k = 2 + (whole[1] >> 7)  # behind one or two bytes of length
    whole[k] = n >> 8
    whole[k + 1] = n & 255
    if client.inflight == client._again:
        client._moved_at = client._now
    client._wake = client._now


# --- time -----------------------------------------------------------------------------------


def tick(client, now):
    """Do what is due, and find out when something is again."""
    if client._left:
        client._moved_at = now  # 31-4.2-RETRY: timed from when it is out
    while True:
        due = _due_in(client, now)
        if due >= 4 or not client._stream:  # a ping may lose it
            break
        what = due & 3
        if what == 3:
            _expire_held(client, now)
        elif what == 1:
            client._tries = min(client._tries + 1, 6)
            client._moved_at = now
            _rewind(client)
            if client._request and not client._first:
                client._first = client._request[0]
                if client.level < 4:
                    client._first[0] |= _AGAIN  # 31-2.1-DUP, RT-OBJECTS
        elif what == 2 and client._ping_at is None:
            client.ping()
        else:
            fail(client, _TIMEOUT)  # 31-2.2-KATIMEOUT, or the stream takes nothing
    if not client._left:
        if client._is_starved and not (client._held_n or client._acks_n):
            fail(client, _AWAITING_REL)
        if client._first or client._again:
            _pump(client, now)
    # None that begins to be timed later is due before this.
    due = min(due >> 2, client._retry_ms or _DAY_MS, client._held_ms)
    # Once what is left is written, something else may be due.
    client._wake = ticks_add(now, 0 if client._is_starved or client._left else due)


def _due_in(client, now):
    # Milliseconds until tick() has work, a day at most, * 4; + which of these four it is.
    if client._left:
        return client._timeout_ms - ticks_diff(now, client._tx_at) << 2
    due = _DAY_MS << 2
    if client._retry_ms and (client.inflight > client._again or client._request):
        # 31-4.2-RETRY: the time-out doubles with each try that brings nothing.
        if client._moved_at is None:
            client._moved_at = now
        due = (client._retry_ms << client._tries) - ticks_diff(now, client._moved_at) << 2 | 1
    if client.keepalive:
        if client._ping_at is None:
            # Silence counts in both directions: a link that only sends may be dead.
            left = client.keepalive * 750 - max(
                ticks_diff(now, client._tx_at), ticks_diff(now, client._rx_at)
            )
        else:
            left = client.keepalive * 1000 - ticks_diff(now, client._ping_at)
        due = min(due, left << 2 | 2)
    if client._held_n:
        due = min(due, client._held_ms - ticks_diff(now, client._held[2]) << 2 | 3)
    return due


# --- connecting -----------------------------------------------------------------------------


def _begin(client, clean_session, packet, stream):
    # Open a stream, on which the packet CONNECT goes first.
    close(client)  # on_drop may have connected
    client._rest()
    client._is_clean = clean_session
    client._error = client._is_present = client._try_at = None
    try:
        stream = stream or (client._opener or client._open)()
    except _STREAM_ERRORS as error:
        raise client._error_of(error)
    client._stream = _check_stream(stream)
    client._first = packet
    if clean_session and client._store:
        try:
            client._store.renew(True)  # before CONNECT leaves
        except MQTTError as error:
            lose(client, error)
    client._moved_at = ticks_ms()


def _advance(client):
    # Go on with an open connection -> did the broker accept it?
    push(client)
    heap_lock()
    step(client)
    if client._error:
        tell(client)
    if not client.is_connected and ticks_diff(client._now, client._moved_at) >= client._timeout_ms:
        fail(client, _TIMEOUT)  # 31-3.1-CONNACK
    return client.is_connected


def _renew(client):
    # A new session: all in flight is sent again as new, no id is held, no filter known.
    ring = client._ring
    at = client._head
    while at != client._tail:
        state = ring[at] & ~_AGAIN
        ring[at] = _PUBREC if state > _PUBREC else state
        at = entry_after(client, at)
    client.queued += client.inflight
    for k in range(1, client._held_end, 3):
        client._held[k] = 0  # the store looks there, too
    client.inflight = client._again = client._held_n = client._held_end = 0


class MQTTError(OSError):
    """`code`: a number with a name in the package, or the broker's own, 1 to 255.  `errno`: the
    system's number, if it was the system that failed, else None."""

    def __init__(self, code, cause=None, place=None):
        super().__init__(code)
        self.errno = None
        if isinstance(cause, OSError) and cause.args:
            number = cause.args[0]
            if isinstance(number, int) and number > 0:  # below: of Mbed TLS
                self.errno = number
        self.code = code
        self._about = cause, place  # for `errors`, which makes the text when somebody reads it

    def __str__(self):
        try:
            from .errors import text_of

            return text_of(self, *self._about)
        except MemoryError:
            return "error %d" % self.code

    __repr__ = __str__  # what MicroPython shows in a traceback


def __getattr__(name):
    # What is loaded when it is asked for: `Journal`, names of codes, modules.
    from .errors import find

    return find(name)


def check_range(name, value, least, most):
    """Raise TypeError unless `value` is an int, ValueError unless `least <= value <= most`."""
    if not (isinstance(value, int) and least <= value <= most):
        raise complaint(name, value, least, most)


def complaint(*about):
    """-> the ValueError or TypeError for a wrong argument, see `errors.complaint()`."""
    from .errors import complaint

    return complaint(*about)


def as_bytes(name, value):
    """`value` as bytes in some form: a str is encoded.  Raises TypeError naming `name`."""
    if isinstance(value, str):
        return value.encode()
    if value.__class__ not in _PLAIN or getattr(value, "itemsize", 1) > 1:
        try:
            return bytes(memoryview(value))  # an array, whatever its elements
        except TypeError:
            raise complaint(name, value)
    return value


def as_text(name, value):
    """`as_bytes()` of what has to be a text: UTF-8 without NUL, or ValueError naming `name`."""
    try:
        value = bytes(as_bytes(name, value))
        for char in str(value, "utf-8"):
            # 311-1.5.3-1, 311-1.5.3-2: MicroPython takes surrogates and, for 0, C0 80.
            if not ord(char) or "\ud7ff" < char < "\ue000":
                break
        else:
            return value
    except UnicodeError:
        pass
    except MemoryError:  # a topic that is published with the heap locked
        return value
    raise complaint(name, value)


def as_filter(topic):
    """`topic` as bytes; ValueError if it is not a filter to subscribe to.  31-A-FILTER"""
    topic = as_text("topic", topic)
    is_wrong = not topic or b"#/" in topic
    for level in topic.split(b"/"):
        if len(level) > 1 and (35 in level or 43 in level):
            is_wrong = True
    if is_wrong:
        raise complaint("filter", topic)
    return topic


def string(value):
    """Bytes behind their length."""
    if len(value) > 65535:
        raise MQTTError(_TOO_LARGE)
    return len(value).to_bytes(2, "big") + value


class Stats:
    """Counters since the client was made; also `stats["sent"]`.

    `sent`: messages sent for the first time; `received`: handed over; `retried`: PUBLISH and
    PUBREL sent again; `duplicates`: QoS 2 repetitions kept from the handler; `strays`:
    acknowledgements of nothing in flight; `dropped`: given up, each told to on_drop; `oversize`:
    larger than the buffer; `refused`: beyond max_awaiting_rel; `reconnects`; `pings`.
    """

    def __init__(self):
        self.sent = self.received = self.retried = self.duplicates = self.strays = 0
        self.dropped = self.oversize = self.refused = self.reconnects = self.pings = 0

    def __getitem__(self, name):
        return getattr(self, name)

    def __repr__(self):
        from .errors import show

        return show(self)


class Message:
    """A received message, seen in place and valid until the handler returns: `qos`,
    `packet_id` (0 at QoS 0), `retain`, `dup`, `topic_len`, `payload_len`; `message[i]` is byte
    `i` of the payload.  Only `topic` and `payload` allocate."""

    def __init__(self, buf):
        self._buf = buf
        self._copier = BytesIO(len(buf))
        self.topic_len = self.payload_len = self._topic = self._payload = 0
        self.qos = self.packet_id = self.retain = self.dup = 0

    __repr__ = Stats.__repr__

    def read(self, first, at, n):
        """For the client: decode a PUBLISH whose body of `n` bytes begins at `at`; if it is
        larger than the buffer, only its topic's length is here -> is it well formed?"""
        rx = self._buf
        self.retain = first & 1 > 0
        self.dup = first & _AGAIN > 0
        self.qos = first >> 1 & 3
        self.packet_id = 0
        self.topic_len = topic_len = rx[at] << 8 | rx[at + 1]
        self._topic = at = at + 2
        self.payload_len = n - topic_len - (4 if first & 6 else 2)
        # 14, 6: 31-2.1-QOS3; 8: MQTT-3.3.1-2, no DUP at QoS 0.
        if self.payload_len < 0 or not topic_len or 0x4140 >> (first & 14) & 1:
            return False
        if n <= len(rx) - _BEHIND:
            at += topic_len
            # 31-3.3-WILD: no message has a name with wildcards.
            if rx.find(b"#", self._topic, at) >= 0 or rx.find(b"+", self._topic, at) >= 0:
                return False
            if first & 6:
                self.packet_id = rx[at] << 8 | rx[at + 1]
                at += 2
        self._payload = at
        return True

    def read_id(self, value):
        """For the client: of a message that is not whole the next byte of its packet id came."""
        self.packet_id = self.packet_id << 8 | value

    def keep(self):
        """For an option: answer the message itself; the client then does not."""
        self.qos = 0

    def __getattr__(self, name):
        if name == "topic":
            at = self._topic
            n = self.topic_len
        elif name == "payload":
            at = self._payload
            n = self.payload_len
        else:
            raise AttributeError(name)
        return bytes(self._buf[at : at + n])

    def __getitem__(self, n):
        if not 0 <= n < self.payload_len:
            raise IndexError("payload has %d bytes" % self.payload_len)
        return self._buf[self._payload + n]

    def topic_is(self, name):
        """Is the topic just `name`, bytes or str?"""
        buf = self._buf
        name = as_bytes("topic", name)
        if self.topic_len != len(name):
            return False
        at = self._topic
        for byte in name:
            if buf[at] != byte:
                return False
            at += 1
        return True

    def matches(self, pattern):
        """Does the topic match the filter `pattern`, bytes or str?"""
        at = self._topic
        return _matches(self._buf, at, at + self.topic_len, as_bytes("filter", pattern))

    def topic_into(self, target):
        """Copy the topic to the start of `target` -> bytes copied (what fits)."""
        return self.copy(self._topic, self.topic_len, target)

    def payload_into(self, target):
        """Copy the payload to the start of `target` -> bytes copied (what fits)."""
        return self.copy(self._payload, self.payload_len, target)

    def copy(self, at, n, target):
        """Copy `n` bytes of the buffer from `at` on, as topic_into()."""
        # From the middle of a buffer only a stream copies without a slice.
        copier = self._copier
        copier.seek(0)
        copier.write(self._buf, at, n)
        copier.seek(0)
        n = min(n, len(target))
        return copier.readinto(target, n) if n else 0


def _matches(buf, at, end, pattern):
    # MQTT-4.7.2-1: no wildcard takes a name that begins with $.
    if buf[at] == 36 and (not pattern or pattern[0] != 36):
        return False
    for char in pattern:
        if char == 35:
            return True
        if char == 43:
            while at < end and buf[at] != 47:
                at += 1
        elif at < end and buf[at] == char or at == end and char == 47:
            at += 1  # behind the end only # may follow: a/# takes a itself
        else:
            return False
    return at == end


# --- hooks ----------------------------------------------------------------------------------
#
# What options use, and nothing else of the core.
#
# The functions above without an underscore are for the package.
#
# queueing: with a method _refuse() it makes room; with give_up(..., is_waiting) it gives up what
# stands behind what is to go out again; bring() and give_back() it calls for that.  _tell_drop()
# tells on_drop.  Attributes:
#
#   _keep(at, after) -> 0, or below 0 a code
#       QoS 0 that cannot go out now was encoded at `at`, the tail: it may stay there.
#   _may_go(at) -> is the entry, whose turn it is, to go out?  If not, it stays the next.
#   _commit(): the store's commit(), or its sync().
#
# v5: it has methods of the names _handle(), _make_connect(), _make_request() and _all_filters(),
# a Message of its own, whose `qos` is 0 once a handler refused it, _may_go, and:
#
#   _levels: begin of CONNECT, longest client id and retry_interval, by level.
#   _extra, _add(at, n): bytes of the properties of a PUBLISH, their length included; if they are
#       more than one, write them to the entry at `at`, so that they end at `n`.
#   _connect_section, _will_section, _request_section: properties behind their length.
#   _goodbye: DISCONNECT.  _farewell(code): an error closes the connection; 0: make _goodbye.
#   _most_options: largest options of a filter.
#
# Those two are attributes, not methods: to look whether a method is there makes an object of it.
#
# A store (journal.Journal) has these methods.  An entry is as the theory of operation has it:
# state, size, packet id, packet.
#
#   open(client_id, level, buffer_size, most, hold, held, ring_bytes)
#           -> (entries, sent, packet_id, was_clean)
#       Once, from the constructor.  `most`: messages that may be kept at once, as far as
#       `ring_bytes` hold them in RAM.  hold(packet_id) is called for each received QoS 2 id.
#       `held`: the core's list of these ids, to be read at any time: number of a set of 30
#       ids, a bit for each id, ticks; sets without a bit do not count.  -> how many messages are
#       here, how many of them may have been sent, the packet id that was used last (0: none),
#       and whether the session before ends with its connection.
#   put(ring, at, n, is_online, is_behind) -> is there room?
#       Keep the new entry of `n` bytes at `at`.  It is durable on return, or at the next
#       commit() with group commit.  `is_online`: its packet may go out before anything else is
#       told.  `is_behind`: it found no room in the ring.
#   fetch(ring, at) -> n
#       Write the oldest entry that lies behind, and from now on does not, to `at`.  Its state
#       has _AGAIN if an earlier life may have sent it; it is 0 if it is no longer what was put.
#   note(first, packet_id)
#       PUBACK, PUBREC, PUBCOMP: this came for a message of ours (PUBACK: or it was given up).
#       PUBLISH, PUBREL: a received QoS 2 id is held, or released.  CONNACK: from now on every
#       message may have been sent; `packet_id`: is it a kept session?
#   renew(is_clean)
#       A new session: no message was sent in it, none has seen PUBREC, no id is held.
#   commit()
#       Make all so far durable; a packet that must not overtake its record is written after it.
#   tidy()
#       As commit(), from poll() and reconnect(): the time for what takes long.
#   sync()
#       As commit(), and what may be written later, too: before a planned switch-off.
#
# All may raise MQTTError (JOURNAL); then nothing has changed.
