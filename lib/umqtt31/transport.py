"""Openers: what makes the stream of a connection.  The only module that imports socket.

A stream has MicroPython's methods `readinto(buf, n)`, `write(buf, off, n)` and
`close()`, and never waits.
"""

from micropython import const

from .errors import MQTTError, number_of

try:
    import socket
except ImportError:  # a build without a network: connect(stream=…) works
    socket = None


_NETWORK = const(256)

# What a socket that is still connecting answers: EAGAIN, EINPROGRESS, EALREADY,
# ENOTCONN as numbered by Linux, macOS and lwIP (ESP32, RP2040).
_CONNECTING = (11, 35, 36, 37, 57, 107, 114, 115, 119, 120, 128)


# By (server, port): what was found last.
_addresses = {}


def _look_up(server, port):
    return socket.getaddrinfo(server, port, 0, socket.SOCK_STREAM)[0]


def open_tcp(server, port, context, look_up=None):
    """Start to connect, waiting for nothing but the name look-up -> a stream.

    `context` is an SSLContext or None; `look_up` as `MQTTClient.look_up`.  Raises OSError,
    ValueError.
    """
    if socket is None:
        raise OSError("no sockets in this build: give connect() a stream")
    key = server, port
    try:
        address = (look_up or _look_up)(server, port)
        _addresses[key] = address
    except OSError:
        # A name server that is away for a while does not keep us from a broker that is there.
        address = _addresses.get(key)
        if not address:
            raise
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
        if context:
            from .tls import wrap

            return wrap(sock, context, server)
        return sock
    except BaseException:
        sock.close()
        raise


def open_stream(opener, address, look_up):
    """-> a stream by `opener()`, or by TCP to `address` (server, port, context), which
    `look_up` finds, if it is not None.

    Raises MQTTError (NETWORK), which says where and why, and TypeError.
    """
    if not (opener or address[0] and isinstance(address[0], (str, bytes))):
        raise TypeError("server must be a host name or an address")
    try:
        return opener() if opener else open_tcp(*address, look_up)
    except Exception as error:
        if isinstance(error, MQTTError):
            raise
        raise broken(error, address, True)


def broken(error, address, is_new):
    """-> the MQTTError for what a stream to `address` raised while it opened (`is_new`)
    or later."""
    number = number_of(error)
    if address[2]:
        from .tls import text_of

        error = text_of(error, address[0] if is_new else None)
        if number and number < 0:
            number = None  # of Mbed TLS
    text = "connection to the broker %s port %d lost: %s"
    if is_new:
        text = "cannot reach the broker %s port %d (check both): %s"
    return MQTTError(_NETWORK, text % (address[0], address[1], error), number)
