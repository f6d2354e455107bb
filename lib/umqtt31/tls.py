"""TLS: what `ssl` stands for, a stream over a socket, and what its errors mean.

Loaded only when `ssl` is given.  Never waits: the handshake goes on inside `readinto()`
and `write()`.  Certificate and host name are checked, unless a context that the program
made says otherwise.  docs/guides/tls.md.
"""

import binascii
import sys

from micropython import const

# Of Mbed TLS: the peer sent an alert.
_ALERT = const(-0x7780)
# EPIPE, ECONNABORTED, ECONNRESET, ENOTCONN (also lwIP's), and Mbed TLS's end of stream;
# MicroPython up to 1.27 has each with either sign.
_GONE = (32, 103, 104, 107, 128, 0x7280)

if sys.implementation.name == "cpython":
    from .cpython import TLSStream, tls
else:
    import tls

    class TLSStream:
        """MicroPython's TLS socket, and the socket below it."""

        def __init__(self, sock, context, server):
            # What asyncio or select may wait for.
            self.raw = raw = context.wrap_socket(
                sock, server_hostname=server, do_handshake_on_connect=False
            )
            self._sock = sock
            # From the first byte that is read on, nothing stands between.
            self._direct = raw.readinto, raw.write
            self.readinto = self._first_read
            self.write = self._first_write

        def _first_read(self, buf, n):
            try:
                n = self._direct[0](buf, n)
            except OSError as error:
                raise self._told(error)
            if n:
                self.readinto, self.write = self._direct
            return n

        def _first_write(self, buf, off, n):
            try:
                return self._direct[1](buf, off, n)
            except OSError as error:
                raise self._told(error)

        def _told(self, error):
            # Who refuses us closes at once: writing may fail before the alert is read.
            if abs(error.errno) not in _GONE:
                return error
            try:
                alert = self._sock.read(7)
            except OSError:
                alert = None
            if alert and len(alert) > 6 and alert[0] == 21:
                error = "alert %d" % alert[6]
            return OSError(_ALERT, str(error))

        def close(self):
            self.raw.close()
            # After a failed handshake MicroPython (all versions) forgets the socket
            # instead of closing it.
            self._sock.close()


def context_of(ssl, is_checked=True):
    """-> the SSLContext that `ssl` stands for.  Allocates: once for each client.

    True: the port's own roots; {"ca", "cert", "key"}: file names (str) or contents
    (bytes), PEM or DER; anything with `wrap_socket` is taken as it is.  Not
    `is_checked`: whoever answers is believed.  Raises TypeError or ValueError.
    """
    if hasattr(ssl, "wrap_socket"):
        return ssl
    if ssl is True:
        ssl = {}
    elif not isinstance(ssl, dict):
        raise TypeError("ssl must be True, a dict or an SSLContext")
    for key in ssl:
        if key not in ("ca", "cert", "key"):
            raise ValueError("ssl: %r is none of ca, cert, key" % (key,))
    ca, cert, key = [_content(ssl, name) for name in ("ca", "cert", "key")]
    if (cert is None) != (key is None):
        raise ValueError("ssl: cert and key belong together")
    context = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)  # this protocol checks by itself
    name = "ca"
    try:
        _load_roots(context, ca, is_checked)
        if cert is not None:
            name = "cert, key"
            chain = _ders(cert, b"CERTIFICATE")
            # Several at once have to be PEM, if the port takes that.
            context.load_cert_chain(
                chain[0] if len(chain) == 1 else cert, _ders(key, b"PRIVATE KEY")[0]
            )
    except ValueError as error:
        raise ValueError("ssl: %s: %s" % (name, error))
    return context


def _load_roots(context, ca, is_checked):
    # What the broker is checked against.
    if not is_checked:
        if hasattr(context, "check_hostname"):  # only CPython's has it
            context.check_hostname = False
        context.verify_mode = 0  # CERT_NONE
    elif ca is not None:
        for der in _ders(ca, b"CERTIFICATE"):
            context.load_verify_locations(der)
    elif hasattr(context, "load_default_certs"):
        context.load_default_certs()
    else:
        raise ValueError('no roots in this port, give {"ca": file name or bytes}')


def _content(ssl, name):
    # The bytes that `ssl[name]` is or names; None if it is not given.
    found = ssl.get(name)
    if isinstance(found, str) and "-----BEGIN " in found:
        found = found.encode()  # as a name it would be shown
    elif isinstance(found, str):
        try:
            with open(found, "rb") as file:
                found = file.read()
        except OSError as error:
            raise ValueError("ssl: cannot read %s %r: %s" % (name, found, error))
    elif found is not None and not isinstance(found, bytes):
        # Without its value: it may be the key.
        raise TypeError("ssl: %s must be a file name or bytes" % name)
    return found


def _ders(data, label):
    # What PEM holds under `label`, as DER, which every port takes: RP2 takes no PEM up
    # to MicroPython 1.28.
    if b"-----BEGIN " not in data:
        return [data]
    parts = data.split(b"-----")
    found = [
        binascii.a2b_base64(parts[k + 1])
        for k in range(len(parts) - 1)
        if parts[k].startswith(b"BEGIN ") and parts[k].endswith(label)
    ]
    if not found:
        raise ValueError("no %s in the PEM" % str(label, "utf-8"))
    return found


def wrap(sock, context, server):
    """-> a stream over `sock`, which may still be connecting.  Allocates.

    `readinto(buf, n)`, `write(buf, off, n)` and `close()` as sockets have them; after a
    `write()` that returned None the next one must be given the same bytes.  `raw` is
    what can be polled.  Raises OSError.
    """
    return TLSStream(sock, context, server)


def text_of(error, server):
    """-> one line on `error`, which `wrap()` or one of its streams raised; without a `server`
    behind the handshake."""
    try:
        from .tlserror import text_of as found

        return found(error, server)
    except MemoryError:
        return "no memory for TLS"
