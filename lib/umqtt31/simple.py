"""umqtt.simple's client over umqtt31: change the import line, nothing else.

`publish()` at QoS 1 and 2 returns when the broker acknowledged, messages of any size that
memory holds come as `f(topic, msg)`, one for each `check_msg()`, and the callback may call
anything.  Unlike the original no wait for an answer is endless: after `connect_timeout`
seconds MQTTError, an OSError, is raised.  docs/guides/moving.md.
"""

# The core handles one packet at a time, as behind it there is no room for answers (_most_acks).
# The callback gets copies, when the core is done with the packet, so that it may call anything.
#
# A message that is larger than the buffer is written from where it is, and read in one go.  While
# it is in flight a PINGREQ stands in the ring in its place.

from micropython import const, heap_lock  # isort: skip

from _thread import allocate_lock
from errno import ETIMEDOUT
from struct import pack_into
from time import sleep_ms, ticks_diff, ticks_ms

from . import (
    Message,
    MQTTError,
    as_bytes,
    check_range,
    check_topic,
    close,
    deliver,
    fail,
    give_back,
    hold,
    owe,
    push,
    step,
    string,
    tell,
    tick,
)  # fmt: skip
from . import MQTTClient as _Client

_PUBLISH = const(0x30)
_TIMEOUT = const(257)
_CLOSED = const(258)
_PROTOCOL = const(259)
_TOO_LARGE = const(260)
_FULL = const(261)
_SUBACK_REFUSED = const(128)

_BEHIND = const(69)  # bytes that the core wants behind the body of a message
_FEW_ACKS = const(100)  # so that those of callbacks inside of callbacks find room
_SHORT_MS = const(10)


class MQTTException(MQTTError):
    """The broker's refusal: `args[0]` is its code, as umqtt.simple has it.  A program may
    raise it, too, with anything in the place of the code."""

    def __init__(self, code=0, cause=None, place=None):
        super().__init__(code, cause if isinstance(code, int) else str(code), place)


class _Error(MQTTError):
    # With the number that its programs compare with.

    def __init__(self, number, cause):
        super().__init__(number, *cause._about)
        self.code = cause.code
        self.errno = number


class _Message(Message):
    def __init__(self, client, buf):
        super().__init__(buf)
        self._client = client

    def read(self, first, at, n):
        self.first = first
        is_sound = Message.read(self, first, at, n)  # super() would allocate
        if is_sound and n > self._client.buffer_size:
            self._client.take_large(first, at, n)
        return is_sound

    def take(self, body, first, n):
        """Hand over the message whose body are the first `n` bytes of `body`."""
        self._buf = body
        try:
            if not Message.read(self, first, 0, n):
                fail(self._client, _PROTOCOL)
            deliver(self._client, True)
        finally:
            self._buf = self._client._rx

    def texts(self):
        """-> topic and payload as new bytes; each by its name would take twice as long."""
        view = memoryview(self._buf)  # by which a slice is no copy
        at = self._topic
        topic = bytes(view[at : at + self.topic_len])
        at = self._payload
        return topic, bytes(view[at : at + self.payload_len])


def _step(client):
    client._most_acks = _FEW_ACKS
    try:
        heap_lock()
        return step(client)
    except StopIteration:  # take_large() has read all
        return 1


def _write(client):
    # Go on with what is being written, as long as the stream takes it in time.
    now = ticks_ms()
    push(client)
    if not client.is_connected:
        tell(client)
    tick(client, now)


def _port_of(port):
    # Programs read it from a file of settings.
    if isinstance(port, str) and port.isdigit():
        port = int(port)
    check_range("port", port, 0, 65535)
    return port


class MQTTClient(_Client):
    """As umqtt.simple's; the attributes that it calls by these names may be changed
    between two connections.  `buffer_size`: of the buffers that are always there.  While one
    thread waits for messages, another or a timer may publish at QoS 0."""

    # The will, as umqtt.simple names it.
    lw_topic = lw_msg = None
    lw_qos = 0
    lw_retain = False
    cb = None
    _sock = False  # no connect() yet
    _is_robust = False
    # Since connect(): messages, to be handed over; what was published in the middle of a call.
    _came = _later = ()
    _waits = 0  # calls that wait for an answer, one inside of another

    def __init__(
        self,
        client_id,
        server,
        port=0,
        user=None,
        password=None,
        keepalive=0,
        ssl=None,
        ssl_params=None,
        *,
        level=4,
        buffer_size=256,
        connect_timeout=10,
        retry_interval=None,
    ):
        if ssl is True:
            from .sslparams import context_of

            ssl = context_of(ssl_params or {})
        # One message under way at a time: publish() waits for it.
        super().__init__(
            # Any bytes, as there: a board's own number is no text.
            client_id if level < 4 else as_bytes("client_id", client_id)[:0],
            server,
            _port_of(port),
            keepalive=keepalive or 0,
            ssl=ssl,
            level=level,
            buffer_size=buffer_size,
            queue_bytes=buffer_size,
            max_inflight=1,
            max_mqueue_len=0,
            connect_timeout=connect_timeout,
            retry_interval=retry_interval,
        )
        self.client_id = client_id
        self.server = server
        self.port, self.ssl = self._address[1:]
        self.user = user
        self.pswd = password
        self._message = _Message(self, self._rx)
        self.on_message = self._on
        self._lock = allocate_lock()  # of one call at a time

    def __getattr__(self, name):
        """`sock`: see `sock.Sock`, None before connect()."""
        if name != "sock":
            raise AttributeError(name)
        if self._sock is False:
            return None
        from .sock import Sock

        self.sock = self._sock = sock = Sock(self, self._stream)
        return sock

    def set_callback(self, f):
        """Call `f(topic, msg)` with new bytes for each message."""
        self.cb = f

    def set_last_will(self, topic, msg, retain=False, qos=0):
        """What the broker publishes when the connection is lost; any bytes, and without
        keep alive, too (then the broker notices late)."""
        check_range("qos", qos, 0, 2)
        flags = 4 | qos << 3 | bool(retain) << 5
        self._will = check_topic(self, topic), as_bytes("msg", msg), flags
        self.lw_topic = topic
        self.lw_msg = msg
        self.lw_retain = retain
        self.lw_qos = qos

    def connect(self, clean_session=True, timeout=None, stream=None):
        """-> session present; `timeout` in seconds, `connect_timeout` if None.

        Raises MQTTException if the broker refuses, OSError if it cannot be reached.
        """
        if timeout is not None:
            self._timeout_ms = int(timeout * 1000)
        user = self.user or None
        client_id = as_bytes("client_id", self.client_id)
        self._identity = self._identity[0], client_id, user, user and self.pswd
        self.keepalive = self.keepalive or 0
        self._address = self.server, _port_of(self.port), self.ssl
        self._will = None
        if self.lw_topic:
            self.set_last_will(self.lw_topic, self.lw_msg, self.lw_retain, self.lw_qos)
        self.sock = self._sock = None
        del self.sock  # of the connection before, or the program's None
        if not self._is_robust:
            self._filters = ()  # the program subscribes again
        close(self)
        self._came = []
        self._later = []
        # Whose publish() raised will publish again.
        self._tail = self._head
        give_back(self)
        self.inflight = self.queued = self._again = 0
        self._most_acks = _FEW_ACKS
        try:
            return int(super().connect(clean_session, stream))
        finally:
            self._error = None  # it is told here, and never again

    def _packet(self, first, body, behind=0):
        # As the core's, but of any size; so many bytes come behind it.
        head = bytearray((first,))
        n = len(body) + behind
        while n > 127:
            head.append(n & 127 | 128)
            n >>= 7
        head.append(n)
        return head + body

    def _error_of(self, cause):
        error = super()._error_of(cause)
        code = error.code
        if code < 256:
            return MQTTException(code, *error._about)
        number = getattr(cause, "errno", None)  # below 0: of a look-up, of TLS
        number = ETIMEDOUT if code == _TIMEOUT else -1 if code == _CLOSED else number
        return _Error(number, error)

    # --- out ------------------------------------------------------------------------------

    def publish(self, topic, msg, retain=False, qos=0):
        """Publish: at QoS 0 it is written, at QoS 1 and 2 acknowledged when this returns."""
        code = -_FULL
        while code == -_FULL:
            if not self.is_connected:
                tell(self)
            if self._lock.locked():
                self._yield()
            if not self._lock.locked():
                with self._lock:
                    if qos or not self._later:
                        code = _Client.publish(self, topic, msg, retain, qos)
            elif qos:
                code = _Client.publish(self, topic, msg, retain, qos)  # super() would allocate
            else:
                topic = check_topic(self, topic)
                self._later.append((topic, bytes(as_bytes("msg", msg)), retain))
                return
            stream = self._stream
            if self._later:  # a call for nothing is slow
                self._go_on()
            if self._left or code == -_FULL:
                self._make_way(qos)
        if qos:
            self._settle()
            if self._stream is not stream:  # the callback connected anew
                raise self._error_of(_CLOSED)

    def _make_way(self, qos):
        # Wait until all is written or, if nothing waits for that, until a place is free.
        if not self._left:
            self._settle()
        while self._left:
            if qos:
                self._await(ticks_ms())
            else:
                self._alone(_write, self)
                sleep_ms(1)

    def _alone(self, call, what):
        # -> call(what), or None in the middle of a call of another thread, or of the one that a
        # timer interrupted, unless somebody waits for an answer.
        if self._lock.locked():
            if not self._waits:
                return None
            self._yield()
            if self._lock.locked():
                return call(what)
        with self._lock:
            what = call(what)  # a new local would need a frame from the heap
        if self._later:
            self._go_on()
        return what

    def _yield(self):
        # Let the other thread's call end; one that a timer interrupted does not.
        n = _SHORT_MS
        while n and self._lock.locked():
            sleep_ms(1)
            n -= 1

    def _go_on(self):
        # What was published meanwhile goes out, as far as there is room.
        later = self._later
        while later and not self._lock.locked():
            with self._lock:
                try:
                    one = later.pop(0)
                    if _Client.publish(self, *one) == -_FULL:
                        later.insert(0, one)
                        return
                except (OSError, IndexError):  # the connection's end, which the next call tells
                    return

    def ping(self):
        """Send PINGREQ; whoever waits for a packet gets the answer."""
        if not self._lock.locked():
            super().ping()
        elif not self._first:
            self._first = b"\xc0\0"  # goes out behind what is being written
            self.stats.pings += 1
            self._wake = self._ping_at = ticks_ms()

    def _refuse(self, code, topic, msg, flags):
        # Write a message that is too large for the buffer from where it is -> as accept().
        if code == _TOO_LARGE:
            push(self)
        elif code != _FULL:
            tell(self)
        qos = flags >> 1
        if code == _FULL or self._left or not self.is_connected or qos and self.inflight:
            return -_FULL
        topic = string(topic)
        if qos:
            self._id = packet_id = self._id % 65535 + 1
            topic += packet_id.to_bytes(2, "big")
            give_back(self)
            pack_into(">BHHBB", self._ring, 0, _PUBLISH + (qos << 4), 2, packet_id, 0xC0, 0)
            self._next = self._tail = 7
            self.inflight = 1
            self._moved_at = ticks_ms()
        self.stats.sent += 1
        self._out = self._packet(_PUBLISH | flags, topic, len(msg))
        self._at = 0
        self._left = len(self._out)
        self._first = msg  # which goes out right behind it, as nobody reads meanwhile
        self._tx_at = ticks_ms()
        while self._left:
            _write(self)
            sleep_ms(1)
        self._out = b""  # or the message would stay in memory
        return 0

    def _settle(self):
        # Poll until no message is under way.
        start = ticks_ms()
        while self.inflight or self.queued:
            self._await(start)

    def _ask(self, first, topics):
        # The callback may ask, too, connect anew, or disconnect.
        request = self._make_request(first, topics)
        start = ticks_ms()
        while self._request:
            self._await(start)
        if not self.is_connected:
            tell(self)
        stream = self._stream
        self._waits += 1  # it goes out in the middle of another call, too
        try:
            self._alone(self._send_request, request)
        finally:
            self._waits -= 1
        while self._request is request:
            self._await(start)
        if self._stream is not stream:
            raise self._error_of(_CLOSED)
        try:
            self._granted(request)
        except MQTTError as error:
            raise MQTTException(_SUBACK_REFUSED, str(error))

    def _await(self, start):
        self._waits += 1
        try:
            if not self._poll(10) and ticks_diff(ticks_ms(), start) >= self._timeout_ms:
                fail(self, _TIMEOUT)
        finally:
            self._waits -= 1

    # --- in -------------------------------------------------------------------------------

    def check_msg(self):
        """Handle one message, if one is there -> its first byte; else None."""
        op = self._turn()
        return op if op > 15 else None

    def wait_msg(self):
        """Wait for a packet -> the first byte of a message; None for others."""
        op = self._sock.wait() if self._sock else -1
        while op < 0:
            op = self._poll(1000) or -1
        return op if op > 15 else None

    def poll(self, timeout_ms=0):
        """As the client's, but that one packet is taken at most."""
        return int(self._poll(timeout_ms) > 0)

    def _poll(self, timeout_ms):
        # -> the first byte of a message, 1 for another packet, 0 for none.
        start = ticks_ms()
        while True:
            op = self._turn()
            if op or ticks_diff(ticks_ms(), start) >= timeout_ms:
                return op
            sleep_ms(1)

    def _turn(self):
        if not self.is_connected:
            tell(self)
        handled = self._alone(_step, self)
        if handled is None:
            return 0
        if self._came and self._waits < 3:  # or callbacks inside of callbacks fill the stack
            return self._hand_over(*self._came.pop(0))
        if not (handled or self.is_connected):
            tell(self)
        return handled and 1

    def _handle(self, first, at, n):
        _Client._handle(self, first, at, n)
        self._most_acks = 0

    def _on(self, message):
        # As `on_message`.
        self._came.append(((message.first, message.packet_id), message.texts()))
        self._most_acks = 0
        message.keep()

    def _hand_over(self, message, texts):
        # In the callback all may change.
        stream = self._stream
        if self.cb:
            self.cb(*texts)
        while message[1] and stream and self._stream is stream:
            if self._alone(self._answer, message):
                break
            sleep_ms(1)
        return message[0]

    def _answer(self, message):
        first, packet_id = message
        if first & 4:
            hold(self, packet_id, self._now)
        owe(self, (first >> 1 & 3) + 3 << 4, packet_id)
        push(self)
        return True

    def take_large(self, first, at, n):
        """For the message: read the one that begins at `at` of the buffer."""
        try:
            body = bytearray(n + _BEHIND)
            room = bytes(n)  # for the copy that the callback gets
        except MemoryError:
            return  # it is passed over, and told
        have = self._end - at
        body[:have] = self._rx[at : self._end]
        self._start = self._end = 0
        view = memoryview(body)
        start = ticks_ms()
        while have < n:
            got = self._stream.readinto(view[have:], n - have)
            if got:
                have += got
                self._ping_at = None  # PINGRESP comes behind the message
                self._rx_at = start = ticks_ms()
            elif got is not None:
                fail(self, _CLOSED)
            elif ticks_diff(ticks_ms(), start) >= self._timeout_ms:
                fail(self, _TIMEOUT)
            else:
                tick(self, ticks_ms())
                if not self._stream:
                    tell(self)
                sleep_ms(1)
        del room
        self._message.take(body, first, n)
        self._is_busy = True  # for the core: the connection goes on
        raise StopIteration
