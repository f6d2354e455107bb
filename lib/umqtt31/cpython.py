"""What MicroPython has and CPython lacks, for running this package on a computer.

Imported by `__init__` under CPython only and not installed on a board: adds
`micropython`, the `ticks` functions and `sleep_ms` where they are missing (a
test's own stand-ins stay), and gives sockets MicroPython's stream methods.
"""

import select as _select
import socket as _socket
import ssl as _ssl
import sys
import time
import types

_PERIOD = 1 << 30  # as on 32-bit boards: ticks wrap after 12.4 days


def _ticks_ms():
    return time.monotonic_ns() // 1_000_000 & _PERIOD - 1


def _ticks_add(ticks, delta):
    return ticks + delta & _PERIOD - 1


def _ticks_diff(a, b):
    return (a - b + _PERIOD // 2 & _PERIOD - 1) - _PERIOD // 2


def install():
    """Put the missing names in place; what is there already is left alone."""
    module = types.ModuleType("micropython")
    module.const = lambda value: value
    module.heap_lock = module.heap_unlock = lambda: None
    sys.modules.setdefault("micropython", module)
    for name, function in (
        ("ticks_ms", _ticks_ms),
        ("ticks_add", _ticks_add),
        ("ticks_diff", _ticks_diff),
        ("sleep_ms", lambda ms: time.sleep(ms / 1000)),
    ):
        if not hasattr(time, name):
            setattr(time, name, function)


class Socket:
    """A CPython socket with MicroPython's stream methods, never blocking."""

    def __init__(self, family=_socket.AF_INET, kind=_socket.SOCK_STREAM, proto=0):
        self.raw = _socket.socket(family, kind, proto)

    def setblocking(self, flag):
        self.raw.setblocking(flag)

    def setsockopt(self, *args):
        self.raw.setsockopt(*args)

    def connect(self, address):
        self.raw.connect(address)

    def readinto(self, buf, n=None):
        """-> bytes read, 0 at the end of the stream, None when there is nothing."""
        n = len(buf) if n is None else n
        view = memoryview(buf)
        try:
            return self.raw.recv_into(view[:n])
        except (BlockingIOError, _ssl.SSLWantReadError, _ssl.SSLWantWriteError):
            return None

    def write(self, buf, off=None, n=None):
        """-> bytes written, None when there is no room."""
        view = memoryview(buf)
        if n is not None:
            view = view[off : off + n]
        elif off is not None:
            view = view[:off]
        try:
            return self.raw.send(view)
        except (BlockingIOError, _ssl.SSLWantReadError, _ssl.SSLWantWriteError):
            return None

    def close(self):
        self.raw.close()


def wrap_tls(context, sock, server):
    """TLS over a `Socket`; the handshake goes on while reading and writing."""
    # CPython makes the TLS object only over a socket that is connected already.
    _select.select([], [sock.raw], [], 10)
    sock.raw = context.wrap_socket(sock.raw, server_hostname=server, do_handshake_on_connect=False)
    return sock


class BytesIO:
    """MicroPython's BytesIO over a buffer: `readinto()` takes a number of bytes."""

    def __init__(self, buf):
        self._view = memoryview(buf)
        self._pos = 0

    def seek(self, pos):
        self._pos = pos

    def write(self, buf):
        """The buffer itself is read here, so nothing is to be copied."""

    def readinto(self, target, n):
        target[:n] = self._view[self._pos : self._pos + n]
        return n


class socket:  # stands in for the module of that name
    """The names of the socket module that `stream` uses."""

    socket = Socket
    getaddrinfo = staticmethod(_socket.getaddrinfo)
    SOCK_STREAM = _socket.SOCK_STREAM
