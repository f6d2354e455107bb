"""Whole packets over a non-blocking stream: a socket, a TLS socket or any other.

The only module that imports socket.  `Link` keeps half a packet between calls,
in both directions, and never waits.  A packet larger than the buffer is drained;
what is needed to acknowledge it is kept.  MQTT 3.1 §2.1.
"""

import sys
from struct import pack_into

from micropython import const

from .errors import MQTTError
from .packet import HAS_SLICES, new_buffer

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

    `state`: 0 closed, then as the user of this class sets it; while it is 1 an error
    of the stream may only mean that it is still connecting.  `error`: what closed it
    and was not raised yet.  `pending`: the buffer of a packet that waits for room in
    the stream, or None; `done` of its bytes are out.

    After `receive()` returned a packet's first byte, `field` is the number in the
    first two bytes of its body, `length` counts these and the rest, which is at the
    start of `rx` until the next call; if `is_oversize`, it is a PUBLISH of which only
    `field`, `packet_id` and `payload_len` are known.  While `need` is 4, its caller
    may read the first four bytes to `head` itself.
    """

    def __init__(self, size):
        # All attributes exist from the start: a new one would allocate.
        self.size = size
        # Packets up to here can be written by assigning to slices, length in one byte.
        self.short = 0 if not HAS_SLICES else size if size < 129 else 129
        self.rx = bytearray(size + _PIECE_BYTES)
        self.tx = new_buffer(size)
        self._spare = new_buffer(size)
        self._piece = bytearray(_PIECE_BYTES)
        self.head = bytearray(8)
        self.raw = self.pending = self.error = None
        self.is_oversize = False
        self.state = self.done = self._end = self._first = self._left = self._have = 0
        self.field = self.length = self.packet_id = self.payload_len = 0
        self.need = 4

    def attach(self, raw):
        """Use the stream `raw`, nothing half read or half written."""
        self.raw = raw
        self.pending = self.error = None
        self.state = _OPENING
        self._have = 0
        self.need = 4

    def close(self):
        """Close the stream, whatever state it is in."""
        if self.state:
            self.state = 0
            try:
                self.raw.close()
            except OSError:
                pass
            self.raw = None

    def fail(self, code, text=None):
        """Close and raise: after an error the link is always closed."""
        self.close()
        raise MQTTError(code, text)

    def lose(self, error):
        """The stream raised `error`: close and raise, if it is not still connecting."""
        if self.state != _OPENING or error.errno not in _CONNECTING:
            self.close()
            self.fail(_NETWORK, "connection to the broker lost: %s" % error)

    def write(self, buf, n):
        """Write `buf[:n]` in one call; what does not fit is left to `flush()`.

        Not to be called while a packet is pending.  `buf` is `tx` (if need be, `tx`
        is another buffer afterwards) or must be left alone until it is flushed.
        """
        try:
            done = self.raw.write(buf, 0, n)
        except OSError as error:
            self.lose(error)
            done = 0
        if done != n:
            self.keep(buf, n, done)

    def keep(self, buf, n, done):
        """Only `done` bytes, or None, of `buf[:n]` could be written."""
        self.done = done or 0
        self._end = n
        self.pending = buf
        if buf is self.tx:
            self.tx = self._spare
            self._spare = buf

    def flush(self):
        """Write what is pending -> is everything out?"""
        if self.pending is not None:
            try:
                done = self.raw.write(self.pending, self.done, self._end - self.done)
            except OSError as error:
                self.lose(error)
                done = 0
            self.done += done or 0
            if self.done < self._end:
                return False
            self.pending = None
        return True

    def receive(self, n=0):
        """-> first byte of the next whole packet, 0 when there is none yet.

        `n`: how many bytes the caller has just read to `head`.
        """
        if self._have:
            self._read_head()  # what came along with the packet before
        while self.need:
            if not n:
                n = self._read(self._piece, self.need)
                if not n:
                    return 0
                for i in range(n):
                    self.head[self._have + i] = self._piece[i]
            self._have += n
            n = 0
            self._read_head()
        rx = self.rx
        left = self._left
        while left:
            # How much to read next, and where to.
            got = self.length - 2 - left
            buf = rx
            n = left
            if self.is_oversize:
                # Topic, packet id, payload: the id is read byte by byte, the rest goes
                # as it comes.
                if got < self.field:
                    n = self.field - got
                elif self._first & 6 and got < self.field + 2:
                    n = 1
                if n > self.size:
                    n = self.size
            elif got:
                # A stream fills a buffer from its start only, so what follows the
                # first piece of a body comes through a buffer of its own.
                buf = self._piece
                if n > _PIECE_BYTES:
                    n = _PIECE_BYTES
            n = self._read(buf, n)
            if not n:
                return 0
            self._left = left = left - n
            if self.is_oversize:
                if self._first & 6 and 0 <= got - self.field < 2:
                    self.packet_id = self.packet_id << 8 | rx[0]
            elif got:
                pack_into("64s", rx, got, buf)
        self.need = 4 - self._have
        return self._first

    def _read(self, buf, n):
        # -> bytes read to the start of `buf`, None or 0 when there are none now.
        try:
            n = self.raw.readinto(buf, n)
        except OSError as error:
            self.lose(error)
            return 0
        if n == 0:
            self.fail(_CLOSED)
        return n

    def _read_head(self):
        # `head` is the header and, so that most packets come in one piece, the first
        # two bytes of the body.  Only behind PINGRESP these are of the next packet.
        head = self.head
        pos = 1
        length = 0
        byte = 128
        # 31-2.1-LEN: four groups of seven bits at most, the lowest first.
        while byte > 127 and pos < self._have and pos < 5:
            byte = head[pos]
            length |= (byte & 127) << 7 * (pos - 1)
            pos += 1
        first = head[0]
        is_large = length > self.size
        if not first or byte > 127 and pos > 4 or is_large and first & 0xF0 != 0x30:
            self.fail(_PROTOCOL)
        end = pos + (3 if byte > 127 else 2 if length > 1 else length)
        self.need = end - self._have
        if self.need > 0:
            return
        self._have = -self.need
        self.need = 0
        self._first = first
        self.field = head[pos] << 8 | head[pos + 1]
        self.length = length
        self._left = length - 2 if length > 2 else 0
        for i in range(self._have):
            head[i] = head[end + i]
        self.is_oversize = is_large
        if is_large:
            self.packet_id = 0
            # Behind topic and packet id is the payload.
            self.payload_len = length - self.field - (4 if first & 6 else 2)
            if self.payload_len < 0:
                self.fail(_PROTOCOL)
