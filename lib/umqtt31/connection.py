"""Connection: opens, keeps alive and closes the link of one client.

Connects step by step, so that nothing waits longer than it was asked to; pings
by itself; knows nothing of messages.  MQTT 3.1 §2.2 (keep alive), §3.1, §3.2,
§3.12 to §3.14.
"""

import random
import time

from micropython import const

from .errors import MQTTError
from .packet import PROTOCOLS, write_connect
from .stream import Link, open_socket
from .topic import check

# States of the link: 0 is closed.
_OPENING = const(1)  # CONNECT is on its way
_WAIT_CONNACK = const(2)
_ONLINE = const(3)

_PACKET_PINGREQ = const(0xC0)
_PACKET_DISCONNECT = const(0xE0)

_REFUSED_UNAVAILABLE = const(3)
_NETWORK = const(256)
_TIMEOUT = const(257)
_CLOSED = const(258)
_PROTOCOL = const(259)
_TOO_LARGE = const(260)
_BUSY = const(263)

_FIRST_PAUSE_MS = const(1000)
_LAST_DOUBLING = const(7)  # 128 s


def as_bytes(text):
    """`text` as bytes; a str allocates, anything else is taken as it is."""
    return text.encode() if isinstance(text, str) else text


def check_range(name, value, least, most):
    """Raise ValueError unless `least <= value <= most`."""
    if not least <= value <= most:
        raise ValueError("%s must be %d to %d, not %r" % (name, least, most, value))


def since(start):
    """Milliseconds since the ticks `start`."""
    return time.ticks_diff(time.ticks_ms(), start)


class Connection:
    """What of a client opens, watches and closes connections."""

    # Seldom set, so that a client needs a smaller table of attributes.
    _will = None
    last_error = None  # why reconnect() has failed so far: an MQTTError

    def __init__(self, client_id, server, port, user, password, keepalive, ssl, level, size):
        client_id = as_bytes(client_id)
        if level not in PROTOCOLS:
            raise ValueError("level must be 3 (MQTT 3.1), not %r" % level)
        # 31-3.1-CLIENTID: 1 to 23 characters, before a socket is opened.
        check_range("length of client_id", len(str(client_id, "utf-8")), 1, 23)
        check_range("keepalive", keepalive, 0, 65535)
        check_range("buffer_size", size, 16, 65535)
        if password is not None and user is None:
            raise ValueError("password without user")  # 31-2.2-USER
        address = server, port or (8883 if ssl else 1883), ssl
        self._identity = level, client_id, user, password, address
        self.keepalive = keepalive
        self._clean = self._is_busy = self._is_pinging = False
        self._attempts = 0  # to connect since one succeeded
        self._attempt_at = None  # ticks of the next one, when that is known
        self._tx_at = self._rx_at = self._ping_at = 0
        self._link = Link(size)

    def set_last_will(self, topic, msg, retain=False, qos=0):
        """What the broker publishes when the connection is lost (§3.1)."""
        if not self.keepalive:
            # Without keep alive a broker may never notice, so no will ever comes.
            raise ValueError("a will needs keepalive > 0")
        topic = as_bytes(topic)
        msg = as_bytes(msg)
        check(topic)
        check_range("qos", qos, 0, 2)
        for byte in msg:
            check_range("will message: byte", byte, 0, 127)  # 31-3.1-WILL
        self._will = topic, msg, 4 | qos << 3 | bool(retain) << 5

    def connect(self, clean_session=True, stream=None):
        """Connect now -> session present (False at level 3, which cannot tell).

        A clean session gives up what is in flight or was accepted before the last
        reset.  `stream`: any MicroPython stream, instead of a socket.  Allocates.
        Raises MQTTError within `connect_timeout`.
        """
        if self._is_busy:
            raise MQTTError(_BUSY)
        self._link.close()
        if clean_session:
            self._start_over()
        self._begin(clean_session, stream)
        while not self._advance():
            time.sleep_ms(1)
        return self._identity[0] > 3 and bool(self._link.field & 0x100)

    def reconnect(self, timeout_ms=0):
        """Connect, or go on connecting, in at most `timeout_ms` -> connected?

        Waits before each attempt a random time of up to 1 s, 2 s, 4 s … 128 s.
        Raises MQTTError only if the broker refuses for good; else `last_error`
        is why it is not connected yet.  Allocates.
        """
        if self._is_busy:
            raise MQTTError(_BUSY)
        link = self._link
        start = time.ticks_ms()
        while link.state != _ONLINE:
            pause_ms = 1
            try:
                if link.state:
                    self._advance()
                else:
                    now = time.ticks_ms()
                    if self._attempt_at is None:
                        # Full jitter, from the first attempt on: a fleet that lost its
                        # broker must not come back in one moment.
                        most = _FIRST_PAUSE_MS << min(self._attempts, _LAST_DOUBLING)
                        pause_ms = random.getrandbits(24) % (most + 1)
                        self._attempt_at = time.ticks_add(now, pause_ms)
                        self._attempts += 1
                    pause_ms = time.ticks_diff(self._attempt_at, now)
                    if pause_ms <= 0:
                        self._attempt_at = None
                        self._begin(self._clean, None)
            except MQTTError as error:
                self.last_error = error
                if error.code < _NETWORK and error.code != _REFUSED_UNAVAILABLE:
                    raise
            left_ms = timeout_ms - since(start)
            if left_ms <= 0:
                break
            time.sleep_ms(min(max(pause_ms, 1), left_ms))
        return link.state == _ONLINE

    def disconnect(self):
        """Say goodbye, so that no will is published, and close (§3.14)."""
        link = self._link
        if link.state == _ONLINE:
            try:
                if self._drain():
                    self._send_acks(time.ticks_ms())
                    if self._drain():
                        self._send_two(_PACKET_DISCONNECT)
                        self._drain()
            except MQTTError:
                pass  # it is closed either way
        link.close()
        self._session.store.sync()

    def _drain(self):
        # Wait until what was written is out -> is it?
        start = time.ticks_ms()
        while not self._link.flush():
            if since(start) >= self._timeout_ms:
                return False
            time.sleep_ms(1)
        return True

    def _begin(self, clean, stream):
        flags = clean << 1
        level, client_id, user, password, address = self._identity
        fields = [client_id]
        if self._will:
            fields.extend(self._will[:2])
            flags |= self._will[2]
        for text in (user, password):
            if text is not None:
                flags |= 0x40 if flags & 0x80 else 0x80
                fields.append(as_bytes(text))
        link = self._link
        n = write_connect(link.tx, link.size, level, flags, self.keepalive, fields)
        if not n:
            raise MQTTError(_TOO_LARGE)
        self._clean = clean
        self._tx_at = time.ticks_ms()
        if stream is None:
            try:
                stream = open_socket(*address)
            except OSError as error:
                text = "cannot reach %s port %d: %s" % (address[:2] + (error,))
                raise MQTTError(_NETWORK, text) from error
        link.attach(stream)
        link.write(link.tx, n)

    def _advance(self):
        # Go on with an open connection -> did the broker accept it?
        link = self._link
        if link.state == _OPENING and link.flush():
            link.state = _WAIT_CONNACK
        if link.state == _WAIT_CONNACK:
            first = link.receive()
            if first:
                if first >> 4 != 2 or link.length != 2:
                    link.fail(_PROTOCOL)  # 31-3.2-CONNACK
                if link.field & 255:
                    link.fail(link.field & 255)  # 31-2.2-RC
                link.state = _ONLINE
                self._is_pinging = False
                self._tx_at = self._rx_at = time.ticks_ms()
                if self.last_error:
                    self.last_error = None  # no remains in the middle of a small heap
                self._start()
                return True
        if since(self._tx_at) >= self._timeout_ms:
            link.fail(_TIMEOUT)  # 31-3.1-CONNACK
        return False

    def ping(self):
        """Send PINGREQ now; poll() raises if no answer comes in time."""
        if self._link.state != _ONLINE:
            raise MQTTError(_CLOSED)
        if self._drain():
            self._ping()

    def _ping_in(self, now, most):
        # Ticks until PINGREQ is due or, after one, its answer is overdue.
        if not self.keepalive:
            return most
        if self._is_pinging:
            left = self.keepalive * 1000 - time.ticks_diff(now, self._ping_at)
        else:
            # Silence counts in both directions: a link that only sends may be dead.
            left = self.keepalive * 750 - max(
                time.ticks_diff(now, self._tx_at), time.ticks_diff(now, self._rx_at)
            )
        return min(left, most)

    def _ping(self):
        self._is_pinging = True
        self._session.stats.pings += 1
        self._send_two(_PACKET_PINGREQ)
        self._ping_at = self._tx_at

    def _send_two(self, first):
        link = self._link
        link.tx[0] = first
        link.tx[1] = 0
        self._tx_at = time.ticks_ms()
        link.write(link.tx, 2)
