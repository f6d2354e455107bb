"""umqtt.simple's client over umqtt31: change the import line, nothing else.

`publish()` at QoS 1 and 2 returns when the broker acknowledged, messages of any size that
memory holds come as `f(topic, msg)`, one for each `check_msg()`, and the callback may call
anything.  Unlike the original no wait for an answer is endless: after `connect_timeout`
seconds MQTTError, an OSError, is raised.  docs/guides/moving.md.
"""

import time
from errno import ETIMEDOUT

from micropython import const, heap_lock, heap_unlock

from . import client as _client
from .errors import MQTTError
from .packet import as_bytes

_ONLINE = const(2)

_MESSAGE = const(2)  # what received() says

_TIMEOUT = const(257)
_CLOSED = const(258)
_TOO_LARGE = const(260)
_FULL = const(261)
_REFUSED_FILTER = const(265)
_SUBACK_REFUSED = const(128)

_SLICE_MS = const(1000)


class MQTTException(MQTTError):
    """The broker's refusal: `args[0]` is its code, as umqtt.simple has it.  A program may
    raise it, too, with anything in the place of the code."""

    def __init__(self, code=0, text=None):
        if isinstance(code, int):
            super().__init__(code, text, code)
        else:
            super().__init__(0, code)


_push = _client.MQTTClient._push


def _port_of(port):
    # Programs read it from a file of settings.
    if isinstance(port, str) and port.isdigit():
        port = int(port)
    _client.check_range("port", port, 0, 65535)
    return port


class MQTTClient(_client.MQTTClient):
    """As umqtt.simple's; the attributes that it calls by these names may be changed
    between two connections.  `buffer_size`: of the buffers that are always there; larger
    ones are made when they are needed and given back.  One thread may wait for messages
    while another publishes at QoS 0."""

    # The will, as umqtt.simple names it.
    lw_topic = lw_msg = None
    lw_qos = 0
    lw_retain = False
    # In place of wait_msg(), as `sock` was told.  False: there was no connect() yet.
    _wait = False

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
            user or None,
            password if user else None,
            keepalive or 0,
            ssl,
            level=level,
            buffer_size=buffer_size,
            max_inflight=1,
            max_mqueue_len=0,
            connect_timeout=connect_timeout,
            retry_interval=retry_interval,
        )
        self.cb = None
        self.client_id = client_id
        self.server = server
        self.port, self.ssl = self._address[1:]
        self.user = user
        self.pswd = password
        self.keepalive = keepalive
        self._is_pushing = False  # is a thread writing?
        # By packet id: why the broker refused, until its publish() tells.  One that a callback
        # ended leaves it here until connect(), or 65,535 messages later.
        self._refused = {}
        self._size = buffer_size
        self._rx = self._protocol.framing.rx
        self._is_large = False  # are the session's buffers for now larger?
        self._is_received_large = False  # is the receive buffer?
        self._protocol.framing.on_large = self._take_large
        self._protocol.is_shared = True  # by the threads that wait and publish

    def __getattr__(self, name):
        """`sock`: see `sock.Sock`, None before connect(); and what `umqtt31.MQTTClient` has."""
        if name == "sock":
            if self._wait is False:
                return None
            from .sock import Sock

            self.sock = sock = Sock(self, self._raw)
            return sock
        return super().__getattr__(name)

    def set_callback(self, f):
        """Call `f(topic, msg)` with new bytes for each message."""
        self.cb = f

    def set_last_will(self, topic, msg, retain=False, qos=0):
        """What the broker publishes when the connection is lost; any bytes, and without
        keep alive, too (then the broker notices late)."""
        self._set_will(topic, msg, retain, qos)
        self.lw_topic = topic
        self.lw_msg = msg
        self.lw_retain = retain
        self.lw_qos = qos

    def connect(self, clean_session=True, timeout=None, stream=None):
        """-> session present; `timeout` in seconds, `connect_timeout` if None.

        Raises MQTTException if the broker refuses, OSError if it cannot be reached.
        """
        if timeout is not None:
            self._protocol.timeout_ms = int(timeout * 1000)
        user = self.user or None
        client_id = as_bytes("client_id", self.client_id)
        _client.check_range("length of client_id", len(client_id), 0, 65535)
        level = self._identity[0]
        self._identity = level, client_id, user, self.pswd if user else None, self.keepalive or 0
        self._address = self.server, _port_of(self.port), self.ssl
        self._will = None
        if self.lw_topic:
            self._set_will(self.lw_topic, self.lw_msg, self.lw_retain, self.lw_qos)
        self._close()
        self._is_pushing = False  # Ctrl-C may have come while it was set
        self._wait = None
        try:
            del self.sock  # of the connection before, or the program's None
        except AttributeError:
            pass
        # Whose publish() raised will publish again.
        while self._protocol.count:
            self._protocol.remove(0)
        self._refused.clear()
        self._restore()
        try:
            return int(super().connect(clean_session, stream))
        except MQTTError as error:
            if error.code < 256:
                raise MQTTException(error.code, error.args[-1])
            raise self._error_of(error.code, error.args[-1], error.errno)

    def _error_of(self, code, text=None, number=None):
        # With the number that its programs compare with.
        if code == _TIMEOUT:
            number = ETIMEDOUT
        elif code == _CLOSED:
            number = -1
        return MQTTError(code, text, number)

    # --- out ------------------------------------------------------------------------------

    def publish(self, topic, msg, retain=False, qos=0):
        """Publish: at QoS 0 it is written, at QoS 1 and 2 acknowledged when this returns."""
        heap_lock()  # see umqtt31.client: so the frame lies on the stack
        self._publish_now(topic, msg, retain, qos)

    def _publish_now(self, topic, msg, retain, qos):
        heap_unlock()
        protocol = self._protocol
        if qos:
            if qos != 1 and qos != 2:
                _client.check_qos(qos)
            qos <<= 1
        if retain:
            qos |= 1
        raw = self._raw
        while True:
            if protocol.state != _ONLINE:
                raise self._error_of(_CLOSED)
            is_pushing = self._is_pushing
            self._is_pushing = True  # see _push()
            try:
                heap_lock()
                n = protocol.accept(topic, msg, qos)
            finally:
                self._is_pushing = is_pushing
            if n >= 0:
                break
            self._make_way(topic, msg, -n)
        if protocol.left:
            self._finish()
        if qos > 1:
            self._settle()
            if self._raw is not raw:  # the callback connected anew
                raise self._error_of(_CLOSED)
            if self._refused:
                self._tell_refusal(n)
        if self._is_large and not (protocol.count or protocol.left):
            self._restore()

    def _push(self):
        # As the client's, but that what one thread has begun to write is its own: a second
        # one would write it again.
        heap_unlock()
        is_pushing = self._is_pushing
        self._is_pushing = True  # no jump between: threads change only there
        if is_pushing:
            return
        try:
            heap_lock()
            _push(self)
        finally:
            self._is_pushing = False

    def _give_up(self, k, reason):
        # At level 5 the broker may refuse a message.
        self._refused[super()._give_up(k, reason)] = reason

    def _tell_refusal(self, packet_id):
        reason = self._refused.pop(packet_id, 0)  # else it is of one that waits outside
        if reason:
            raise MQTTException(reason)

    def _make_way(self, topic, msg, code):
        # For a message that was refused: something else is under way, or it is too large.
        if self._protocol.left:
            return self._finish()
        self._settle()
        if code == _TOO_LARGE:
            topic_len = len(as_bytes("topic", topic))
            self._enlarge(topic_len + len(as_bytes("msg", msg)) + 10)
        elif code != _FULL:
            # At level 5 the broker says beforehand what it refuses.
            raise (MQTTException if code < 256 else MQTTError)(code)

    def _fit(self, size):
        pass  # they are written from where they are

    def _enlarge(self, size):
        self._finish()  # of what _settle() began
        self._is_large = True
        self._protocol.resize(size)

    def _restore(self):
        if self._is_large:
            self._is_large = False
            self._protocol.resize(self._size)

    def _finish(self):
        # Wait until all that was begun is written, as long as it goes on.
        protocol = self._protocol
        while protocol.left:
            left = protocol.left
            if not self._drain() and protocol.left == left:
                self._fail(_TIMEOUT)
            self._tell()

    def _settle(self):
        # Poll until no message is under way.
        start = None
        while self._protocol.count:
            heap_lock()
            if not self._poll(10):
                if start is None:
                    start = time.ticks_ms()
                elif self._since(start) >= self._protocol.timeout_ms:
                    self._fail(_TIMEOUT)

    def subscribe(self, topic, qos=0):
        """Subscribe; raises MQTTException(128) if the broker refuses.

        A filter is not remembered: after connect() the program subscribes again.
        """
        try:
            super().subscribe(topic, qos)
        except MQTTError as error:
            if error.code == _REFUSED_FILTER:
                raise MQTTException(_SUBACK_REFUSED, error.args[-1])
            raise
        finally:
            self._protocol.forget([one[0][0] for one in self._protocol.filters])

    def _await_answer(self, request=None):
        # As the client's, but that the callback may ask, too, or connect anew.
        raw = self._raw
        super()._await_answer(request)
        if request and self._raw is not raw:
            raise self._error_of(_CLOSED)

    # --- in -------------------------------------------------------------------------------

    def check_msg(self):
        """Handle one message, if one is there -> its first byte; else None."""
        heap_lock()
        op = self._poll(0)
        return op if op > 15 else None

    def wait_msg(self):
        """Wait for a packet -> the first byte of a message; None for others."""
        wait = self._wait
        op = wait() if wait else 0
        while not (op or wait):
            heap_lock()
            op = self._poll(_SLICE_MS)
        return op if op > 15 else None

    def poll(self, timeout_ms=0):
        """As the client's, but that one packet is taken at most."""
        return int(super().poll(timeout_ms) > 0)

    def _poll(self, timeout_ms):
        # As the client's, but that one packet is taken at most and the callback may call
        # anything: from its call on, all may have changed.  -> the first byte of a message,
        # else what received() says.
        heap_unlock()
        protocol = self._protocol
        framing = protocol.framing
        now = time.ticks_ms()
        until = None
        while True:
            if protocol.state != _ONLINE:
                self._tell()
                raise self._error_of(_CLOSED)
            event = 0
            try:
                room = protocol.room
                while not event and room > 0:
                    n = self._readinto(framing.into, framing.need)
                    if not n:
                        if n is not None:
                            self._fail(_CLOSED)
                        break
                    event = protocol.received(n)
            except Exception as error:
                self._on_failure(error)
            if event == _MESSAGE:
                event = framing.first
                raw = self._raw
                packet_id = protocol.message.packet_id
                topic, payload = protocol.message.copies()
                if self._is_received_large:
                    self._is_received_large = False
                    protocol.use(self._rx)
                cb = self.cb
                if cb:
                    cb(topic, payload)
                if packet_id and self._raw is raw:
                    protocol.acknowledge(event >> 1 & 3, packet_id, now)
            elif event > _MESSAGE:
                self._on_event(event)
            n = protocol.tick(now, event)
            if n:
                if n > 1:
                    self._fail(n)
                if protocol.aged:
                    self._expire()
                if self._raw:
                    heap_lock()
                    self._push()
                self._tell()
            if event or timeout_ms <= 0:
                return event
            if until is None:
                until = time.ticks_add(now, timeout_ms)
            elif time.ticks_diff(until, now) <= 0:
                return 0
            time.sleep_ms(1)
            now = time.ticks_ms()

    def _take_large(self, length):
        # Asked by the framing.  Without memory for it, the message is passed over.
        try:
            self._protocol.use(bytearray(length + len(self._rx) - self._size))
            self._is_received_large = True
        except MemoryError:
            pass
