"""What MicroPython has and CPython lacks, for running this package on a computer.

Imported by `__init__` under CPython only and not installed on a board: adds
`micropython`, the `ticks` functions and `sleep_ms` where they are missing (a
test's own stand-ins stay), and gives sockets MicroPython's stream methods.
"""

import asyncio
import os
import select as _select
import socket as _socket
import ssl as _ssl
import sys
import tempfile
import time
import types
import weakref

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


# What `__getattr__` of the package, of MQTTClient, of simple's, of Message and of v5's
# answers.
_LOADED = ("FileBlockDevice", "Journal")
_ANSWERED = (
    "is_connected",
    "inflight",
    "queued",
    "stats",
    "keepalive",
    "sock",
    "v5",
    "topic",
    "payload",
)
_PROPERTIES = (
    "payload_format_indicator",
    "message_expiry_interval",
    "content_type",
    "response_topic",
    "correlation_data",
    "subscription_identifier",
    "user_property",
    "properties",
)


def replace():
    """Give the modules that are loaded by now what MicroPython has: its streams, and names
    that `__getattr__` answers in dir()."""
    sys.modules["umqtt31.message"].BytesIO = BytesIO
    sys.modules["umqtt31.transport"].socket = socket
    _list_all(sys.modules["umqtt31.client"].MQTTClient, sys.modules["umqtt31.message"].Message)


def _list_all(*classes):
    def names(self):
        found = object.__dir__(self) + [one for one in _ANSWERED if hasattr(self, one)]
        return found + list(_PROPERTIES if hasattr(self, "property_into") else ())

    for one in classes:
        one.__dir__ = names

    package = sys.modules["umqtt31"]

    def package_names():
        codes = [name for name, code in vars(package.codes).items() if isinstance(code, int)]
        return list(vars(package)) + list(_LOADED) + codes

    package.__dir__ = package_names


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


class BytesIO:
    """MicroPython's BytesIO over a buffer: `readinto()` takes a number of bytes."""

    def __init__(self, buf):
        self._view = memoryview(buf)
        self._pos = 0

    def seek(self, pos):
        self._pos = pos

    def write(self, buf):
        """The buffer itself is read here, so nothing is to be copied."""
        self._view = memoryview(buf)

    def readinto(self, target, n):
        target[:n] = self._view[self._pos : self._pos + n]
        return n


class socket:  # stands in for the module of that name
    """The names of the socket module that `stream` uses."""

    socket = Socket
    getaddrinfo = staticmethod(_socket.getaddrinfo)
    SOCK_STREAM = _socket.SOCK_STREAM


class _SSLContext(_ssl.SSLContext):
    """CPython's SSLContext, loaded from DER as MicroPython's is; a chain may be PEM."""

    def load_verify_locations(self, cadata):
        try:
            super().load_verify_locations(cadata=cadata)
        except (OSError, ValueError) as error:
            raise ValueError("invalid cert") from error

    def load_cert_chain(self, cert, key):
        if not cert.startswith(b"-----BEGIN "):
            cert = _pem("CERTIFICATE", cert)
        # CPython takes certificate and key from files only.
        with tempfile.TemporaryDirectory() as folder:
            cert_path = os.path.join(folder, "cert")
            key_path = os.path.join(folder, "key")
            _write(cert_path, cert)
            for kind in ("", "EC ", "RSA "):  # DER does not say which it is, PEM does
                _write(key_path, _pem(kind + "PRIVATE KEY", key))
                try:
                    return super().load_cert_chain(cert_path, key_path)
                except OSError as error:
                    reason = str(error)
        raise ValueError("invalid cert or key: %s" % reason)


def _pem(label, der):
    return _ssl.DER_cert_to_PEM_cert(der).replace("CERTIFICATE", label).encode()


def _write(path, data):
    with open(path, "wb") as file:
        file.write(data)


class tls:  # stands in for the module of that name
    """The names of MicroPython's tls module that `umqtt31.tls` uses."""

    SSLContext = _SSLContext
    PROTOCOL_TLS_CLIENT = _ssl.PROTOCOL_TLS_CLIENT


# Of Mbed TLS: the peer sent an alert.
_ALERT = -0x7780

# A stream that ends where TLS goes on.  Debian 12's 3.11.2 takes it for an orderly end.
_ENDED = (ConnectionError, _ssl.SSLEOFError, _ssl.SSLZeroReturnError)

# What a later connection of the same context to the same server may resume.
_sessions = weakref.WeakKeyDictionary()


class TLSStream(Socket):
    """TLS over a `Socket`, or one of Python's own, which may still be connecting; resumes the
    last session."""

    def __init__(self, sock, context, server):
        self.raw = getattr(sock, "raw", sock)
        self._context = context
        self._server = server
        self._is_wrapped = self._has_read = False

    def readinto(self, buf, n=None):
        """As `Socket.readinto()`; the handshake goes on here."""
        if not self._is_ready():
            return None
        try:
            n = super().readinto(buf, n)
            if n == 0 and not (self._has_read or self.raw.version()):
                raise _ssl.SSLEOFError(_ssl.SSL_ERROR_EOF, "end of stream")
        except OSError as error:
            raise self._told(error) from error
        self._has_read = self._has_read or bool(n)
        return n

    def write(self, buf, off=None, n=None):
        """As `Socket.write()`; the handshake goes on here."""
        if not self._is_ready():
            return None
        try:
            return super().write(buf, off, n)
        except OSError as error:
            raise self._told(error) from error

    def _told(self, error):
        # Who refuses us closes at once: writing may fail before the alert is read.
        if isinstance(error, _ENDED) and not self._has_read:
            try:
                self.raw.recv(1)
            except _ssl.SSLError as alert:
                if "ALERT" in str(alert):
                    return ValueError(str(alert))
            except OSError:
                pass
            return OSError(_ALERT, str(error))
        # OpenSSL's numbers would be taken for the system's.
        return ValueError(str(error)) if isinstance(error, _ssl.SSLError) else error

    def close(self):
        """Close the socket and keep the session."""
        if self._is_wrapped and self.raw.version():  # the handshake was completed
            session = self.raw.session
            if session.has_ticket:
                _sessions[self._context] = self._server, session
        super().close()

    def _is_ready(self):
        # CPython makes the TLS object only over a socket that is connected.
        if not self._is_wrapped:
            poll = _select.poll()
            poll.register(self.raw, _select.POLLOUT)
            if not poll.poll(0):
                return False
            number = self.raw.getsockopt(_socket.SOL_SOCKET, _socket.SO_ERROR)
            if number:
                raise OSError(number, os.strerror(number))
            # Taken out, and put back by close(): a session is not tried again after a
            # handshake that failed.
            server, session = _sessions.pop(self._context, (None, None))
            self.raw = self._context.wrap_socket(
                self.raw,
                server_hostname=self._server,
                do_handshake_on_connect=False,
                session=session if server == self._server else None,
            )
            self._is_wrapped = True
        return True


# --- for umqtt31.aio ------------------------------------------------------------------------

# By the stream's id: (loop, number of the socket, future) of who waits for it.
_awaited = {}


async def sleep_ms(ms):
    """asyncio.sleep() in milliseconds, as MicroPython has it."""
    await asyncio.sleep(ms / 1000)


def can_await(stream):
    """Can asyncio wait for this stream?  A test's own it cannot."""
    return hasattr(getattr(stream, "raw", None), "fileno")


async def readable(stream):
    """Wait until the stream has something to read, or was released."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    number = stream.raw.fileno()
    loop.add_reader(number, release, stream)
    _awaited[id(stream)] = loop, number, future
    try:
        await future
    finally:
        release(stream)


def release(stream):
    """The stream is about to be closed: who waits for it goes on."""
    loop, number, future = _awaited.pop(id(stream), (None, None, None))
    if loop:
        loop.remove_reader(number)
        if not future.done():
            future.set_result(None)
