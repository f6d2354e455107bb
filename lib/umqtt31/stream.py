"""Whole packets over a non-blocking stream: a socket, a TLS socket or any other.

The only module that imports socket.  `Link` keeps half a packet between calls,
in both directions, and never waits.  A packet larger than the buffer is drained;
what is needed to acknowledge it is kept.  MQTT 3.1 §2.1.
"""

import sys
from struct import pack_into

from micropython import const

from .errors import MQTTError
from .packet import new_buffer

if sys.implementation.name == "cpython":
    from .cpython import socket, wrap_tls
else:
    try:
        import socket
    except ImportError:  # a build without a network: connect(stream=…) works
        socket = None

    def wrap_tls(ssl, stream, server):
        return ssl.wrap_socket(stream, server_hostname=server, do_handshake_on_connect=False)


_PIECE_BYTES = const(64)
_OPENING = const(1)
_NETWORK = const(256)
_CLOSED = const(258)
_PROTOCOL = const(259)

# What a socket that is still connecting answers: EAGAIN, EINPROGRESS, EALREADY,
# ENOTCONN as numbered by Linux, macOS and lwIP (ESP32, RP2040).
_CONNECTING = (11, 35, 36, 37, 57, 107, 114, 115, 119, 120, 128)


def open_socket(server, port, ssl):
    """Start to connect, waiting for nothing but the name look-up -> a stream.

    `ssl` is an ssl.SSLContext or None.  Raises OSError.
    """
    if socket is None:
        raise OSError("no sockets in this build: give connect() a stream")
    address = socket.getaddrinfo(server, port, 0, socket.SOCK_STREAM)[0]
    sock = socket.socket(address[0], address[1], address[2])
    try:
        sock.setblocking(False)
        try:
            # IPPROTO_TCP, TCP_NODELAY: the same numbers on Linux, macOS and lwIP; the
            # unix port has no names for them.  With Nagle a window fills half as fast.
            sock.setsockopt(6, 1, 1)
        except OSError:
            pass  # a port without the option
        try:
            sock.connect(address[-1])
        except OSError as error:
            if error.errno not in _CONNECTING:
                raise
        return wrap_tls(ssl, sock, server) if ssl else sock
    except Exception:
        sock.close()
        raise


class Link:
    """One connection after another through the same buffers, `size` bytes each.

    `state`: 0 closed, then as the user of this class sets it; while it is 1 an
    error of the stream may only mean that it is still connecting.  `pending`: the
    buffer of a packet that waits for room in the stream, or None.  After
    `receive()` returned a packet's first byte, its body is `rx[:length]` until the
    next call; if `is_oversize`, it is a PUBLISH of which only `topic_len`,
    `packet_id` and `payload_len` are known.
    """

    def __init__(self, size):
        # All attributes exist from the start: a new one would allocate.
        self.size = size
        self.rx = bytearray(size + _PIECE_BYTES)
        self.tx = new_buffer(size)
        self._spare = new_buffer(size)
        self._piece = bytearray(_PIECE_BYTES)
        self._raw = self.pending = None
        self.is_oversize = False
        self.state = self._pos = self._end = self._first = self._shift = 0
        self._left = -1  # bytes of the body to come; -1: still in the header
        self.length = self.topic_len = self.packet_id = self.payload_len = 0

    def attach(self, raw):
        """Use the stream `raw`, nothing half read or half written."""
        self._raw = raw
        self.pending = None
        self.state = _OPENING
        self._left = -1
        self._first = 0

    def close(self):
        """Close the stream, whatever state it is in."""
        if self.state:
            self.state = 0
            try:
                self._raw.close()
            except OSError:
                pass
            self._raw = None

    def fail(self, code, text=None):
        """Close and raise: after an error the link is always closed."""
        self.close()
        raise MQTTError(code, text)

    def write(self, buf, n):
        """Write `buf[:n]` in one call; what does not fit is left to `flush()`.

        Not to be called while a packet is pending.  `buf` is `tx` (if need be, `tx`
        is another buffer afterwards) or must be left alone until it is flushed.
        """
        try:
            done = self._raw.write(buf, 0, n)
        except OSError as error:
            self._on_error(error)
            done = 0
        if done != n:
            self._pos = done or 0
            self._end = n
            self.pending = buf
            if buf is self.tx:
                self.tx = self._spare
                self._spare = buf

    def flush(self):
        """Write what is pending -> is everything out?"""
        if self.pending is not None:
            try:
                done = self._raw.write(self.pending, self._pos, self._end - self._pos)
            except OSError as error:
                self._on_error(error)
                done = 0
            self._pos += done or 0
            if self._pos < self._end:
                return False
            self.pending = None
        return True

    def receive(self):
        """-> first byte of the next whole packet, 0 when there is none yet."""
        rx = self.rx
        left = self._left
        while left:
            # How much to read next, and where to.
            buf = rx
            got = 0
            if left < 0:
                n = 1 if self._first else 2
            else:
                n = left
                got = self.length - left
                if self.is_oversize:
                    n = self._until_next_field(got)
                elif got:
                    # A stream fills a buffer from its start only, so what follows the
                    # first piece of a body comes through a buffer of its own.
                    buf = self._piece
                    if n > _PIECE_BYTES:
                        n = _PIECE_BYTES
            try:
                n = self._raw.readinto(buf, n)
            except OSError as error:
                self._on_error(error)
                return 0
            if not n:
                if n == 0:
                    self.fail(_CLOSED)
                return 0
            if left > 0:
                self._left = left = left - n
                if self.is_oversize:
                    if got < 2:
                        self.topic_len = self.topic_len << 8 | rx[0]
                    elif self._first & 6 and 0 <= got - 2 - self.topic_len < 2:
                        self.packet_id = self.packet_id << 8 | rx[0]
                elif got:
                    pack_into("64s", rx, got, buf)
                continue
            byte = rx[0]
            if not self._first:
                if not byte:
                    self.fail(_PROTOCOL)
                self._first = byte
                if n == 2 and rx[1] < 128 and rx[1] <= self.size:  # the common case
                    self.length = self._left = left = rx[1]
                    self.is_oversize = False
                    continue
                self.length = self._shift = 0
                if n == 1:
                    continue
                byte = rx[1]
            # 31-2.1-LEN: four groups of seven bits at most.
            self.length |= (byte & 127) << self._shift
            if byte < 128:
                self._left = left = self.length
                self.is_oversize = left > self.size
                if self.is_oversize:
                    self.topic_len = self.packet_id = 0
                    if self._first & 0xF0 != 0x30:
                        self.fail(_PROTOCOL)
            elif self._shift == 21:
                self.fail(_PROTOCOL)
            self._shift += 7
        first = self._first
        self._left = -1
        self._first = 0
        return first

    def _until_next_field(self, pos):
        # An oversize PUBLISH: two bytes of length, topic, packet id, payload; of these
        # the length and the id are read byte by byte, the rest goes as it comes.
        n = self.length - pos
        id_pos = 2 + self.topic_len
        body = id_pos + 2 if self._first & 6 else id_pos
        self.payload_len = self.length - body
        if pos == 2 and self.payload_len < 0:
            self.fail(_PROTOCOL)
        if pos < 2 or id_pos <= pos < body:
            return 1
        if pos < id_pos:
            n = id_pos - pos
        return n if n < self.size else self.size

    def _on_error(self, error):
        if self.state != _OPENING or error.errno not in _CONNECTING:
            self.fail(_NETWORK, "connection to the broker lost: %s" % error)
