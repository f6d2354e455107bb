"""Whole packets over a non-blocking stream: a socket, a TLS socket or any other.

The only module that imports socket.  `Link` keeps half a packet between calls,
in both directions, and never waits.  A packet larger than the buffer is drained;
what is needed to acknowledge it is kept.  MQTT 3.1 §2.1.
"""

import sys

from micropython import const

from .errors import CLOSED, NETWORK, PROTOCOL, MQTTError
from .packet import PUBLISH, SLACK, copy, new_buffer

if sys.implementation.name == "cpython":
    from .cpython import socket, wrap_tls
else:
    try:
        import socket
    except ImportError:  # a build without a network: connect(stream=…) works
        socket = None

    def wrap_tls(context, sock, server):
        return context.wrap_socket(sock, server_hostname=server, do_handshake_on_connect=False)


_PIECE_BYTES = const(64)

# What a socket that is still connecting answers: EAGAIN, EINPROGRESS, EALREADY,
# ENOTCONN as numbered by Linux, macOS and lwIP (ESP32, RP2040).
_CONNECTING = (11, 35, 36, 37, 57, 107, 114, 115, 119, 120, 128)


def open_socket(server, port, tls):
    """Start to connect, waiting for nothing but the name look-up -> a stream.

    `tls` is an ssl.SSLContext or None.  Raises OSError.
    """
    address = socket.getaddrinfo(server, port, 0, socket.SOCK_STREAM)[0]
    sock = socket.socket(address[0], address[1], address[2])
    try:
        sock.setblocking(False)
        if hasattr(socket, "TCP_NODELAY"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            sock.connect(address[-1])
        except OSError as error:
            if error.errno not in _CONNECTING:
                raise
        return wrap_tls(tls, sock, server) if tls else sock
    except Exception:
        sock.close()
        raise


class Link:
    """One connection after another through the same buffers.

    After `receive()` returned a packet's first byte, its body is `rx[:length]`
    until the next call; if `is_oversize`, it is a PUBLISH of which only
    `topic_len`, `packet_id` and `payload_len` are known.
    """

    def __init__(self, size):
        self.size = size
        self.rx = bytearray(size + max(SLACK, _PIECE_BYTES))
        self.tx = new_buffer(size)
        self._spare = new_buffer(size)
        self._piece = bytearray(_PIECE_BYTES)
        # All attributes exist from the start: a new one would allocate.
        self._raw = self._out = None
        self._pos = self._end = self._shift = 0
        self.length = self.topic_len = self.packet_id = self.payload_len = 0
        self.is_oversize = False

    def attach(self, raw):
        """Use the stream `raw`, nothing half read or half written."""
        self._raw = raw
        self._out = None
        self._is_fresh = True
        self._next()

    def close(self):
        """Close the stream, whatever state it is in."""
        raw = self._raw
        self._raw = None
        if raw:
            try:
                raw.close()
            except OSError:
                pass

    def fail(self, code, text=None):
        """Close and raise: after an error the link is always closed."""
        self.close()
        raise MQTTError(code, text)

    def is_attached(self):
        return self._raw is not None

    def is_stalled(self):
        """Does a packet wait for room in the stream?"""
        return self._out is not None

    def write(self, buf, n):
        """Write `buf[:n]` in one call; what does not fit is left to `flush()`.

        Not to be called while stalled.  `buf` is `tx` (then `tx` is another
        buffer afterwards, if need be) or must be left alone until flushed.
        """
        self._out = buf
        self._pos = 0
        self._end = n
        if not self.flush() and buf is self.tx:
            self.tx = self._spare
            self._spare = buf

    def flush(self):
        """Write what is left over -> is everything out?"""
        while self._out is not None:
            n = None
            try:
                n = self._raw.write(self._out, self._pos, self._end - self._pos)
            except OSError as error:
                if not (self._is_fresh and error.errno in _CONNECTING):
                    self.fail(NETWORK, "connection to the broker lost: %s" % error)
            if not n:
                return False
            self._is_fresh = False
            self._pos += n
            if self._pos == self._end:
                self._out = None
        return True

    def receive(self):
        """-> first byte of the next whole packet, 0 when there is none yet."""
        if self._left < 0 and not self._receive_header():
            return 0
        if not (self._drain() if self.is_oversize else self._receive_body()):
            return 0
        first = self._first
        self._left = -1
        self._first = 0
        return first

    def _next(self):
        self._left = -1  # bytes of the body to come; -1: still in the header
        self._first = 0

    def _receive_header(self):
        rx = self.rx
        if not self._first:
            n = self._read(rx, 2)
            if not n:
                return False
            self._first = rx[0]
            if not rx[0]:
                self.fail(PROTOCOL)
            self.length = self._shift = 0
            if n == 2:
                self._add_length(rx[1])
        while self._left < 0:
            if not self._read(rx, 1):
                return False
            self._add_length(rx[0])
        return True

    def _add_length(self, byte):
        # 31-2.1-LEN: four groups of seven bits at most.
        self.length |= (byte & 127) << self._shift
        self._shift += 7
        if byte < 128:
            self._left = self.length
            self.is_oversize = self.length > self.size
            if self.is_oversize and self._first & 0xF0 != PUBLISH:
                self.fail(PROTOCOL)
            self.topic_len = self.packet_id = 0
        elif self._shift == 28:
            self.fail(PROTOCOL)

    def _receive_body(self):
        # A stream fills a buffer from its start only, so what follows the first
        # piece of a body comes through a buffer of its own.
        while self._left:
            got = self.length - self._left
            if got:
                n = self._read(self._piece, min(self._left, _PIECE_BYTES))
                if n:
                    copy(self.rx, got, self._piece)
            else:
                n = self._read(self.rx, self._left)
            if not n:
                return False
            self._left -= n
        return True

    def _drain(self):
        while self._left:
            pos = self.length - self._left
            id_pos = 2 + self.topic_len
            body = id_pos + 2 if self._first & 6 else id_pos
            if pos == 2 and body > self.length:
                self.fail(PROTOCOL)
            in_id = id_pos <= pos < body
            n = self._left
            if pos < 2 or in_id:
                n = 1
            elif pos < id_pos:
                n = id_pos - pos
            n = self._read(self.rx, min(n, self.size))
            if not n:
                return False
            self._left -= n
            if pos < 2:
                self.topic_len = self.topic_len << 8 | self.rx[0]
            elif in_id:
                self.packet_id = self.packet_id << 8 | self.rx[0]
            self.payload_len = self.length - body
        return True

    def _read(self, buf, n):
        try:
            n = self._raw.readinto(buf, n)
        except OSError as error:
            self.fail(NETWORK, "connection to the broker lost: %s" % error)
        if n == 0:
            self.fail(CLOSED, "broker closed the connection: reconnect()")
        return n
