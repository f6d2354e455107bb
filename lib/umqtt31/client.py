"""MQTTClient: the front that waits.  It owns the stream and the clock, and calls the
program's handlers; what is sent and when is the protocol's business.

Nothing here waits without a deadline, and nothing allocates between two connections but
what its docstring says.
"""

import random
import time

from micropython import const, heap_lock, heap_unlock

# The largest first: from source, compiling them takes most memory at once.
# isort: off
from .protocol import Protocol
from .errors import MQTTError, number_of
from .levels import LEVELS
from .packet import as_bytes, as_text, connect_packet, packet, string
from .ram import RamStore
from .topic import check
from .transport import broken, open_stream
# isort: on

_OPENING = const(1)
_ONLINE = const(2)
_MESSAGE = const(2)
_OVERSIZE = const(3)
_ACCEPTED = const(4)

_DROPPING = const(2)  # busy inside on_drop

_PACKET_SUBSCRIBE = const(0x82)
_PACKET_UNSUBSCRIBE = const(0xA2)
_DISCONNECT = b"\xe0\x00"

_REFUSED_UNAVAILABLE = const(3)
_NETWORK = const(256)
_TIMEOUT = const(257)
_CLOSED = const(258)
_TOO_LARGE = const(260)
_FULL = const(261)
_JOURNAL = const(262)
_BUSY = const(263)
_REFUSED_FILTER = const(265)

_FIRST_PAUSE_MS = const(1000)
_LAST_DOUBLING = const(7)  # 128 s

# What a socket that is still connecting answers: EAGAIN, EINPROGRESS, EALREADY,
# ENOTCONN as numbered by Linux, macOS and lwIP (ESP32, RP2040).  Also in `transport`: taken
# from there, 35 bytes less, a board needed 3.3 KB more heap to load and run.
_CONNECTING = (11, 35, 36, 37, 57, 107, 114, 115, 119, 120, 128)


def check_range(name, value, least, most):
    """Raise TypeError unless `value` is an int, ValueError unless `least <= value <= most`."""
    if not isinstance(value, int):
        raise TypeError("%s must be an int, not %r" % (name, value))
    if not least <= value <= most:
        raise ValueError("%s must be %d to %d, not %r" % (name, least, most, value))


def check_qos(qos):
    """Raise TypeError, ValueError unless it is 0, 1 or 2."""
    check_range("qos", qos, 0, 2)


def check_stream(stream):
    """Raise TypeError unless `stream` is one, as far as that can be seen."""
    if not hasattr(stream, "readinto"):
        raise TypeError("stream has no readinto()")


# What a stream may raise; Mbed TLS's errors come as OSError and as ValueError.
_STREAM_ERRORS = (OSError, ValueError, MemoryError)


def _end(buf, n):
    return 0  # as a stream does at its end


class MQTTClient:
    """An MQTT client in fixed memory; docs/reasons/design.md says how.

    `client_id`: 1 to 23 characters at level 3, up to 65,535 bytes above, where it may be
    empty for clean sessions, at level 5 for all.  `port` 0: 1883, or 8883 with `ssl`: True,
    {"ca", "cert", "key"} or an SSLContext, see docs/guides/tls.md.  `level`: 3 (MQTT 3.1), 4
    (3.1.1) or 5 (5.0), see `v5`.  `keepalive`, `retry_interval` (0: only on reconnect; None:
    30 at level 3, else 0), `await_rel_timeout` and `connect_timeout` in seconds.
    `buffer_size`: largest packet in bytes, both ways.
    `store`: RamStore (default) or Journal.  `overflow`: "refuse", "drop_oldest" or
    "latest".  `max_awaiting_rel`: received QoS 2 messages that may wait for their PUBREL.
    `ordered`: one message at a time, all of one QoS above 0, none ever given up.  Raises
    ValueError, TypeError.
    """

    # Seldom set, so that a client needs a smaller table of attributes.
    _find_victim = None
    _will = None
    _opener = None  # what opens a stream, in place of a socket
    on_message = None  # handler(message), allocation-free
    on_oversize = None  # handler(topic_len, payload_len)
    # handler(packet_id, reason): FULL, TIMEOUT (max_age), CLOSED (clean session), JOURNAL
    # (flash kept it wrong); at level 5 the broker's reason code, too
    on_drop = None
    last_error = None  # why reconnect() has failed so far: an MQTTError
    # look_up(server, port) -> the first of what socket.getaddrinfo() says, in place of it
    look_up = None
    # What makes an error of a code; a front that keeps another client's numbers has its own.
    _error_of = MQTTError

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
        store=None,
        max_inflight=4,
        max_mqueue_len=16,
        mqueue_store_qos0=False,
        overflow="refuse",
        max_awaiting_rel=512,
        await_rel_timeout=300,
        retry_interval=None,
        max_subscriptions=8,
        ordered=False,
        connect_timeout=10,
    ):
        check_range("level", level, 3, 5)
        client_id = as_text("client_id", client_id)
        # 31-3.1-CLIENTID: before a socket is opened.
        length = len(client_id if level > 3 else str(client_id, "utf-8"))
        check_range("length of client_id", length, level == 3, LEVELS[level][1])
        if password is not None and user is None and level < 5:
            raise ValueError("password without user")  # 31-2.2-USER
        if retry_interval is None:
            retry_interval = LEVELS[level][2]
        check_range("keepalive", keepalive, 0, 65535)
        check_range("port", port, 0, 65535)
        check_range("buffer_size", buffer_size, 16, 65535)
        # One of 65,535 ids is a request's.
        check_range("max_inflight", max_inflight, 1, 65534)
        check_range("max_mqueue_len", max_mqueue_len, 0, 65534 - max_inflight)
        check_range("max_awaiting_rel", max_awaiting_rel, 1, 65535)
        check_range("retry_interval at level %d" % level, retry_interval, 0, LEVELS[level][3])
        check_range("await_rel_timeout", await_rel_timeout, 1, 86400)
        check_range("max_subscriptions", max_subscriptions, 0, 65535)
        check_range("connect_timeout", connect_timeout, 1, 3600)
        if store is not None and not hasattr(store, "recover"):
            raise TypeError("store must be a Journal")
        if overflow != "refuse":
            from .giveup import POLICIES

            self._find_victim = POLICIES.get(overflow)
            if ordered or not self._find_victim:  # SIB-NOEXC: nothing is ever skipped
                raise ValueError('overflow: "refuse", without ordered "drop_oldest" or "latest"')
        if ordered:
            max_inflight = 1  # MQTT-4.6-RM1: one at a time
        self._identity = level, client_id, user, password, keepalive
        if ssl == 0:
            ssl = None
        if ssl is not None:  # {} is the port's own roots
            from .tls import context_of

            ssl = context_of(ssl)
        self._address = server, port or (8883 if ssl else 1883), ssl
        self._clean = self._is_busy = False
        self._flags = 0  # of the message that is published
        self._most_packets = 64  # for one call of poll() to take
        self._attempts = 0  # to connect since one succeeded
        self._attempt_at = None  # ticks of the next one, when that is known
        self._began_at = None  # ticks, while the broker has not accepted
        self._raw = self._error = None  # the stream; what closed it, or its code
        self._readinto = None  # the stream's
        make = Protocol
        if level == 5:
            from .v5 import Protocol5 as make
        # A method is found only behind a search among all attributes, but for these.
        self.publish = self.publish
        self.poll = self.poll
        self._poll = self._poll
        self._push = self._push
        self._protocol = protocol = make(
            RamStore() if store is None else store,
            max_inflight,
            max_mqueue_len,
            buffer_size,
            level,
            max_subscriptions,
        )
        protocol.keepalive_ms = keepalive * 1000
        protocol.retry_ms = retry_interval * 1000
        protocol.held_ms = await_rel_timeout * 1000
        protocol.timeout_ms = connect_timeout * 1000
        protocol.mqueue_store_qos0 = mqueue_store_qos0
        # The broker may hold ids that an earlier life used, and a reset forgot.
        protocol.last_id = random.getrandbits(16) % 65535
        protocol.open(client_id, max_awaiting_rel)
        protocol.failed = self._on_write_failure
        if store is not None:
            from .recovery import Recovery

            store.recover(Recovery(protocol, time.ticks_ms()))
        if ordered:
            from .ordered import Ordered

            self.publish = Ordered(self.publish, protocol).publish

    def set_last_will(self, topic, msg, retain=False, qos=0):
        """What the broker publishes when the connection is lost (§3.1)."""
        if not self._identity[4]:
            # Without keep alive a broker may never notice, so no will ever comes.
            raise ValueError("a will needs keepalive > 0")
        self._set_will(topic, msg, retain, qos)

    def _set_will(self, topic, msg, retain, qos):
        topic = as_bytes("topic", topic)
        msg = as_bytes("msg", msg)
        check(topic)
        check_qos(qos)
        if self._identity[0] < 4:
            for byte in msg:
                check_range("will message: byte", byte, 0, 127)  # 31-3.1-WILL
        self._will = topic, msg, 4 | qos << 3 | bool(retain) << 5

    def set_callback(self, f):
        """Call `f(topic, msg)` with new bytes for each message, as umqtt.simple; None for none."""
        self.on_message = f and (lambda message: f(message.topic, message.payload))

    def __getattr__(self, name):
        """`is_connected`: is there a connection that the broker accepted?
        `inflight`: messages sent and not yet acknowledged.  `queued`: messages
        accepted that wait for the window or a connection.  `stats`: counters, see
        `protocol.Stats`.  `keepalive`: seconds.  `v5`: at level 5, see `terms.Options`."""
        # Not properties: they make MicroPython search all classes at every store
        # to an attribute, which then takes seven times as long.
        protocol = self._protocol
        if name == "inflight":
            return protocol.inflight()
        if name == "queued":
            return protocol.count - protocol.inflight()
        if name == "is_connected":
            return protocol.state == _ONLINE
        if name == "keepalive":
            return protocol.keepalive_ms // 1000
        if name == "stats" or name == "v5":
            return getattr(protocol, name)
        raise AttributeError(name)

    # --- publishing ----------------------------------------------------------------------

    def publish(self, topic, msg, retain=False, qos=0, max_age=0, properties=None):
        """Accept a message, without waiting -> packet id, 0 at QoS 0.

        QoS 1 and 2 are queued while offline or behind the window, QoS 0 only with
        `mqueue_store_qos0`.  `max_age`: seconds after which the message is given up
        if it still waits in the queue, 0 for never (never after a reset).  `properties`: at
        level 5, as `properties.encode()` makes them.
        Raises ValueError, TypeError; MQTTError: FULL, TOO_LARGE, CLOSED (QoS 0
        offline).  Nothing changes then.
        """
        if qos:
            if qos != 1 and qos != 2:
                check_qos(qos)  # 31-2.1-QOS3
            qos <<= 1
        if retain:
            qos |= 1
        if max_age or properties:
            properties = self._protocol.prepare(properties, max_age)
            qos |= properties
        # Nothing here takes more than four words of the frame, which would be too large then:
        # see _push().
        properties = self._protocol
        retain = properties.accept
        heap_lock()
        retain = retain(topic, msg, qos)
        if retain < 0:
            self._flags = qos
            retain = self._make_room(topic, msg)
        if max_age:
            self._set_age(retain, max_age)
        # No more than this: the store may fail for what else waits, whose ages poll() looks at.
        if properties.left:
            self._push_answers()
            if self._error and not (retain or properties.mqueue_store_qos0):
                self._tell()  # else it is kept, and poll() tells
        return retain

    def _on_write_failure(self, error, flags):
        # While accept() wrote a message with these flags.
        if self._protocol.left and not isinstance(error, Exception):
            self._close()  # as in _push()
        self._lose(error)
        if not flags & 6:
            self._tell()

    def _set_age(self, packet_id, max_age):
        max_age = time.ticks_add(time.ticks_ms(), max_age * 1000)
        self._protocol.expire_at(packet_id, max_age)

    def _make_room(self, topic, msg):
        # publish() was refused: by its own fault, or for want of room.
        if self._is_busy == _DROPPING:
            raise MQTTError(_BUSY)  # nor is anything else given up meanwhile
        protocol = self._protocol
        flags = self._flags
        self._expire()
        while True:
            heap_lock()
            code = protocol.accept(topic, msg, flags)
            if code != -_FULL:
                break
            if not (flags & 6 or protocol.mqueue_store_qos0):
                raise MQTTError(_FULL if protocol.state == _ONLINE else _CLOSED)
            k = -1
            if self._find_victim and protocol.places() > 0:
                k = self._find_victim(protocol, as_bytes("topic", topic))
            if k < 0:
                break
            self._give_up(k, _FULL)
        if code < 0:
            raise MQTTError(-code)
        return code

    def _expire(self):
        # Give up what has waited too long, also while hooks took their time.
        k = 0
        while k >= 0:
            k = self._protocol.find_expired(time.ticks_ms())
            if k >= 0:
                self._give_up(k & 65535, k >> 16 or _TIMEOUT)

    def _give_up(self, k, reason):
        # -> packet id of the message, 0 at QoS 0.
        protocol = self._protocol
        packet_id = protocol.remove(k)
        protocol.stats.dropped += 1
        if self.on_drop:
            # Inside, nothing may change the queue that the caller is about to use.
            was_busy = self._is_busy
            self._is_busy = _DROPPING
            protocol.lock(True)
            try:
                self.on_drop(packet_id, reason)
            finally:
                self._is_busy = was_busy
                protocol.lock(False)
        return packet_id

    def flush(self, timeout_ms):
        """Poll until nothing is in flight or queued -> is it safe to switch off?"""
        protocol = self._protocol
        start = time.ticks_ms()
        while protocol.count or protocol.left:
            left_ms = timeout_ms - self._since(start)
            if left_ms <= 0 or protocol.state != _ONLINE:
                return False
            self.poll(min(left_ms, 50))
        protocol.store.sync()
        return True

    # --- the stream -------------------------------------------------------------------------

    # A frame of more than 11 words comes from the heap, if there is room, and the search
    # for it takes longer than all else.  With the heap locked it lies on the stack.  So
    # what is called all the time, and is large, is entered locked and unlocks first;
    # nothing can come in between, as MicroPython looks for what is pending at jumps.

    def _push(self):
        # Write what is due, as far as the stream takes it.  Entered with the heap locked.
        heap_unlock()
        protocol = self._protocol
        try:
            while protocol.left or protocol.is_due and protocol.next():
                n = protocol.left
                n = protocol.write(protocol.out, protocol.end - n, n)
                if not n:
                    protocol.wait(time.ticks_ms())
                    return
                protocol.left -= n
        except BaseException as error:
            if not isinstance(error, Exception):
                self._close()  # Ctrl-C: what is written already may be written again
            self._lose(error)

    def _on_failure(self, error):
        # Of a handler, or as in _lose().
        if self._is_busy:
            self._is_busy = False
            if self._raw:
                self._push_answers()  # to what came before it
            raise error
        if not isinstance(error, Exception) or getattr(error, "code", 0) == _JOURNAL:
            # What was read is lost, so this is the end for the next one who reads; until then
            # there may be a disconnect().
            self._readinto = _end
            self._protocol.is_due = True
        self._lose(error)

    def _push_answers(self):
        # Messages wait: tick() has not yet looked at their ages.
        self._protocol.is_ending = True
        try:
            heap_lock()
            self._push()
        finally:
            self._protocol.is_ending = False

    def _lose(self, error):
        # Of the store, which is raised on, or of the stream, if that is not just still
        # connecting.  Allocates nothing for the stream's.  While only answers go out the store's
        # is for the next poll() to raise, since its record is still due.
        if self._protocol.is_ending and isinstance(error, MQTTError):
            return
        if isinstance(error, MQTTError) or not isinstance(error, _STREAM_ERRORS):
            raise error
        number = number_of(error)
        if self._protocol.state != _OPENING or number not in _CONNECTING:
            self._close()
            self._error = self._error or error

    def _tell(self):
        # Raise what closed the connection.
        error = self._error
        if error:
            if isinstance(error, int):
                raise self._error_of(error)
            raise broken(error, self._address, self._began_at is not None)

    def _fail(self, code):
        # After an error the stream is always closed.
        if self._began_at is None:
            self._error = code  # with the heap locked there is no room, and poll() tells later
        if self._identity[0] == 5 and self._protocol.goodbye(code):
            heap_lock()
            self._push()
        self._close()
        if self._began_at is None:
            raise self._error_of(code)
        from .codes import refusal

        raise refusal(code, self._identity[0], self._address)

    def _close(self):
        self._protocol.lost()
        raw = self._raw
        if raw:
            self._raw = self._readinto = None
            try:
                raw.close()
            except OSError:
                pass

    def _since(self, start):
        return time.ticks_diff(time.ticks_ms(), start)

    # --- receiving ----------------------------------------------------------------------------

    def poll(self, timeout_ms=0):
        """Do all that is due: receive, deliver, acknowledge, send, ping.

        Waits up to `timeout_ms` for a packet -> packets handled.  Raises what a
        handler raises (its message stays unacknowledged), and MQTTError when the
        connection is lost or closed: then call `reconnect()`.
        """
        if self._is_busy:
            raise MQTTError(_BUSY)
        heap_lock()
        return self._poll(timeout_ms)

    def _poll(self, timeout_ms):
        # Entered with the heap locked.
        heap_unlock()
        protocol = self._protocol
        framing = protocol.framing
        # Bounded, so that a flood cannot keep the program from its own work.
        most = self._most_packets
        now = time.ticks_ms()
        until = None
        while True:
            if protocol.state != _ONLINE:
                self._rest()
                self._tell()
                raise MQTTError(_CLOSED)
            handled = 0
            try:
                while handled < most and protocol.room > 0:
                    n = self._readinto(framing.into, framing.need)
                    if not n:
                        if n is not None:
                            self._fail(_CLOSED)
                        break
                    n = protocol.received(n)
                    if not n:
                        continue
                    handled += 1
                    if n > 1:
                        if n == _MESSAGE:
                            message = protocol.message
                            self._is_busy = True
                            if self.on_message:
                                self.on_message(message)
                            self._is_busy = False
                            if message.qos:
                                protocol.acknowledge(message.qos, message.packet_id, now)
                        else:
                            self._on_event(n)
                        if not self._raw:
                            break  # the handler closed the connection
            except BaseException as error:
                self._on_failure(error)
            n = protocol.tick(now, handled)
            if n:
                if n > 1:
                    self._fail(n)
                if protocol.aged:
                    self._rest()
                if self._raw:
                    heap_lock()
                    self._push()
                if self._error:
                    self._tell()
            if handled or timeout_ms <= 0:
                return handled
            if until is None:
                until = time.ticks_add(now, timeout_ms)
            elif time.ticks_diff(until, now) <= 0:
                return 0
            time.sleep_ms(1)
            now = time.ticks_ms()

    check_msg = poll  # by its name in umqtt.simple

    def wait_msg(self):
        """Wait for a packet, `connect_timeout` at most."""
        return self.poll(self._protocol.timeout_ms)

    def _on_event(self, event):
        # What received() says beside HANDLED and MESSAGE.
        if event > _OVERSIZE:
            self._fail(event)
        message = self._protocol.message
        self._is_busy = True
        if self.on_oversize:
            self.on_oversize(message.topic_len, message.payload_len)
        self._is_busy = False
        if message.qos:
            self._protocol.acknowledge(message.qos, message.packet_id, time.ticks_ms())
        if not self.on_oversize:
            # Acknowledged, or it would come for ever; but nobody may overlook it.
            self._push_answers()
            raise MQTTError(
                _TOO_LARGE,
                "a message of %d bytes came, larger than buffer_size: raise it or set on_oversize"
                % message.payload_len,
            )

    def next_due_ms(self):
        """How long the program may sleep before poll() or reconnect() has work.

        What arrives meanwhile waits.  At most a day.
        """
        now = time.ticks_ms()
        protocol = self._protocol
        if protocol.state == _ONLINE:
            return protocol.due_in(now)
        if self._attempt_at is not None and not protocol.state:
            now = protocol.expires_in(now, time.ticks_diff(self._attempt_at, now))
            return max(0, now)
        return 0

    # --- connecting ---------------------------------------------------------------------------

    def connect(self, clean_session=True, stream=None):
        """Connect now -> session present (False at level 3, which cannot tell).

        A clean session gives up what is in flight or was accepted before the last
        reset.  `stream`: any MicroPython stream, instead of a socket, or a callable that
        opens one, which `reconnect()` will use, too.  It returns None where it has nothing
        now, or no room; what it raises, EAGAIN as well, ends the connection.  Allocates.
        Raises MQTTError within `connect_timeout`.
        """
        if self._is_busy:
            raise MQTTError(_BUSY)
        if stream and not callable(stream):
            check_stream(stream)
        self._begin(clean_session, stream, True)
        while not self._advance():
            time.sleep_ms(1)
        return self._protocol.is_present

    def reconnect(self, timeout_ms=0):
        """Connect, or go on connecting, in at most `timeout_ms` -> connected?

        Waits before each attempt a random time of up to 1 s, 2 s, 4 s … 128 s.
        Raises MQTTError only if the broker refuses for good, or CONNECT is larger than
        `buffer_size`; else `last_error` is why it is not connected yet.  Allocates.
        """
        if self._is_busy:
            raise MQTTError(_BUSY)
        protocol = self._protocol
        start = time.ticks_ms()
        self._error = None
        while protocol.state != _ONLINE:
            pause_ms = 1
            try:
                if protocol.state:
                    self._advance()
                else:
                    pause_ms = self._pause()
                    if pause_ms <= 0:
                        self._attempt_at = None
                        self._begin(self._clean, None)
            except MQTTError as error:
                self.last_error = error
                if error.code < _NETWORK and error.code != _REFUSED_UNAVAILABLE:
                    raise
                if error.code == _TOO_LARGE:  # of CONNECT
                    raise
            left_ms = timeout_ms - self._since(start)
            if left_ms <= 0:
                break
            time.sleep_ms(min(max(pause_ms, 1), left_ms))
        return protocol.state == _ONLINE

    def _rest(self):
        # What is due without a connection, or at once.
        self._protocol.store.commit()
        self._expire()
        self._protocol.drowse(time.ticks_ms())

    def _pause(self):
        # Milliseconds until the next attempt to connect.
        self._rest()
        now = time.ticks_ms()
        if self._attempt_at is None:
            # Full jitter, from the first attempt on: a fleet that lost its broker must
            # not come back in one moment.
            most = _FIRST_PAUSE_MS << min(self._attempts, _LAST_DOUBLING)
            self._attempt_at = time.ticks_add(now, random.getrandbits(24) % (most + 1))
            self._attempts += 1
        return time.ticks_diff(self._attempt_at, now)

    def _make_connect(self, clean):
        # -> CONNECT; raises where it cannot be sent.
        level, client_id, user, password, keepalive = self._identity
        if not (client_id or clean or level == 5):
            raise ValueError("an empty client_id needs clean_session=True")
        flags = clean << 1
        fields = [client_id]
        if self._will:
            fields.extend(self._will[:2])
            flags |= self._will[2]
        if user is not None:
            flags |= 0x80
            fields.append(as_text("user", user))
        if password is not None:
            flags |= 0x40
            fields.append(as_bytes("password", password))
        self._fit(sum(map(len, fields)) - len(client_id))  # or no two bytes hold a length
        make = connect_packet if level < 5 else self._protocol.connect_packet
        packet = make(LEVELS[level][0], flags, keepalive, fields)
        self._fit(len(packet) - len(client_id))
        return packet

    def _begin(self, clean, stream, is_anew=False):
        # `is_anew`: what there was ends, once it is clear that this can begin.
        packet = self._make_connect(clean)
        protocol = self._protocol
        self._rest()
        if is_anew:
            self._close()
            if callable(stream):
                self._opener = stream
                stream = None
            if clean:
                from .giveup import start_over

                start_over(protocol, self._give_up)
        self._clean = clean
        self._error = None
        stream = stream or open_stream(self._opener, self._address, self.look_up)
        check_stream(stream)
        self._raw = stream
        self._readinto = stream.readinto
        self._began_at = now = time.ticks_ms()
        protocol.keepalive_ms = self._identity[4] * 1000
        protocol.begin(clean, packet, now)
        protocol.write = stream.write
        heap_lock()
        self._push()
        self._tell()

    def _fit(self, size):
        # May CONNECT, SUBSCRIBE or UNSUBSCRIBE have so many bytes?
        if size > self._protocol.framing.size:
            raise MQTTError(_TOO_LARGE)

    def _advance(self):
        # Go on with an open connection -> did the broker accept it?
        protocol = self._protocol
        try:
            self._rest()
            heap_lock()
            self._push()
            if self._raw and not protocol.left:
                self._take()
            self._tell()
            if protocol.state == _ONLINE:
                self._attempts = 0
                self._attempt_at = None
                self._began_at = None
                if self.last_error:
                    self.last_error = None  # no remains in the middle of a small heap
                protocol.tick(time.ticks_ms(), 1)
                heap_lock()
                self._push()
                self._tell()
                return True
        except MQTTError:  # of the store, too
            self._close()
            raise
        if self._since(self._began_at) >= protocol.timeout_ms:
            self._fail(_TIMEOUT)  # 31-3.1-CONNACK
        return False

    def _take(self):
        # Take what comes before the broker accepts.
        protocol = self._protocol
        framing = protocol.framing
        n = None
        code = 0
        try:
            while not code:
                n = self._readinto(framing.into, framing.need)
                if not n:
                    break
                code = protocol.received(n)
        except Exception as error:
            self._on_failure(error)
        if n == 0:
            self._fail(_CLOSED)
        if code > _ACCEPTED:
            self._fail(code)

    def disconnect(self):
        """Say goodbye, so that no will is published, and close (§3.14)."""
        try:
            if self._protocol.state == _ONLINE and self._drain():
                self._protocol.write_first(_DISCONNECT)
                self._drain()
        except MQTTError:
            pass  # it is closed either way
        finally:
            self._close()
            self._error = None
            self._protocol.store.sync()

    def _drain(self):
        # Wait until what was written and the answers are out -> are they?
        protocol = self._protocol
        start = time.ticks_ms()
        protocol.is_ending = True
        try:
            heap_lock()
            self._push()
            while self._raw and protocol.left:
                if self._since(start) >= protocol.timeout_ms:
                    return False
                time.sleep_ms(1)
                heap_lock()
                self._push()
        finally:
            protocol.is_ending = False
        self._tell()
        return True

    def ping(self):
        """Send PINGREQ now; poll() raises if no answer comes within `keepalive`, unless 0."""
        if self._protocol.state != _ONLINE:
            raise self._error_of(_CLOSED)
        if self._drain():
            self._protocol.now = time.ticks_ms()
            self._protocol.ping()
            self._push_answers()

    # --- subscriptions ------------------------------------------------------------------------

    def subscribe(self, topic, qos=0, properties=None):
        """Subscribe to a filter, or to a list of (filter, QoS) -> list of granted QoS.

        At level 5 options may be added to a QoS, and there may be `properties`, see `v5`.
        Waits for the broker's answer, `connect_timeout` at most, and before that as long for
        those that are just being sent again.  The filters are remembered and sent again
        on every connection, but where the broker says that it kept them.  Raises ValueError,
        TypeError, MQTTError: CLOSED, FULL (`max_subscriptions`), TOO_LARGE, TIMEOUT,
        REFUSED_FILTER.
        """
        return self._request(
            _PACKET_SUBSCRIBE,
            topic if isinstance(topic, (list, tuple)) else ((topic, qos),),
            properties,
        )

    def unsubscribe(self, topic):
        """Unsubscribe from a filter or a list of filters; waits for the answer."""
        return self._request(
            _PACKET_UNSUBSCRIBE, topic if isinstance(topic, (list, tuple)) else (topic,)
        )

    def _request(self, first, topic, properties=None):
        if self._is_busy:
            raise MQTTError(_BUSY)
        request, alone = self._make_requests(first, topic, properties)
        if self._protocol.state != _ONLINE:
            raise self._error_of(_CLOSED)
        self._await_answer()
        self._ask(request, alone)
        self._await_answer(request)
        return self._granted(request)

    def _make_requests(self, first, topic, properties=None):
        # -> the request for all filters and, of SUBSCRIBE, one for each of them.
        names = []
        alone = []
        head = body = b"\0\0" + (self._protocol.prepare(properties, None) or b"")
        for name in topic:
            qos = 0
            if first == _PACKET_SUBSCRIBE:
                try:
                    name, qos = name
                except (TypeError, ValueError):
                    raise TypeError("topic must be a list of (filter, QoS)")
            check_range("qos", qos, 0, 2 if self._identity[0] < 5 else 47)
            name = bytes(as_bytes("topic", name))
            check(name, True)
            part = string(name)
            if first == _PACKET_SUBSCRIBE:
                part += bytes((qos,))
                alone.append(self._make_request(first, [name], head + part))
            names.append(name)
            body += part
        if not names:
            raise ValueError("topic: no filter given")
        return self._make_request(first, names, body), alone

    def _make_request(self, first, names, body):
        # -> as `protocol.ask()` takes it.
        request = packet(first, body)
        self._fit(len(request))
        # UNSUBACK has codes at level 5 only.
        answers = 0 if first == _PACKET_UNSUBSCRIBE and self._identity[0] < 5 else len(names)
        return names, request, len(request) - len(body), bytearray(answers)

    def _ask(self, request, alone):
        # No other request waits.
        protocol = self._protocol
        kept = [one for one in protocol.filters if one[0][0] not in request[0]]
        known = len(kept)
        kept += alone
        if len(kept) > protocol.most_filters:
            raise MQTTError(_FULL, "too many filters: raise max_subscriptions")
        protocol.ask(request, kept, known)

    def _granted(self, request):
        # What the broker answered, None to UNSUBSCRIBE.
        names, packet, _, codes = request
        refused = [names[k] for k in range(len(codes)) if codes[k] > 2]
        if refused:
            self._protocol.forget(refused)
            from .codes import text_of

            # Below 128 there are none.
            reason = text_of(max(codes) | 128)
            raise MQTTError(_REFUSED_FILTER, "broker refused %r: %s" % (refused, reason))
        return None if packet[0] & 0x20 else list(codes)

    def _await_answer(self, request=None):
        # Poll until no SUBSCRIBE or UNSUBSCRIBE waits any more, or not this one.
        protocol = self._protocol
        start = time.ticks_ms()
        while protocol.state != _ONLINE or (
            protocol.request and (not request or request is protocol.request)
        ):
            if self._since(start) >= protocol.timeout_ms:
                self._fail(_TIMEOUT)
            heap_lock()
            self._poll(1)  # a subclass may have a poll() of its own
