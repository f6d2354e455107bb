"""What a TLS handshake needs before it, and what it says when it fails.

`context_of()` makes the context that `ssl` stands for; `text_of()` tells an error of TLS to a
person.  `tls` loads both when they are called for, and lets them go.  Mbed TLS tells its
reasons in a ValueError's text or as a negative number; docs/guides/tls.md says what cannot be
told apart.
"""

import binascii
import time

import tls


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
    given = {"ca": None, "cert": None, "key": None}
    for name in ssl:
        if name not in given:
            raise ValueError("ssl: %r is none of ca, cert, key" % (name,))
        given[name] = _content(name, ssl[name])
    cert = given["cert"]
    key = given["key"]
    if (cert is None) != (key is None):
        raise ValueError("ssl: cert and key belong together")
    context = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)  # this protocol checks by itself
    name = "ca"
    try:
        if not is_checked:
            context.verify_mode = 0  # CERT_NONE
        elif given["ca"] is not None:
            for der in _ders(given["ca"], b"CERTIFICATE"):
                context.load_verify_locations(der)
        elif hasattr(context, "load_default_certs"):
            context.load_default_certs()
        else:
            raise ValueError('no roots in this port, give {"ca": file name or bytes}')
        if cert is not None:
            name = "cert, key"
            chain = _ders(cert, b"CERTIFICATE")
            if len(chain) == 1:  # several at once have to be PEM, if the port takes that
                cert = chain[0]
            context.load_cert_chain(cert, _ders(key, b"PRIVATE KEY")[0])
    except ValueError as error:
        raise ValueError("ssl: %s: %s" % (name, error))
    return context


def _content(name, value):
    # The bytes that `value` is or names; None if there is none.
    if isinstance(value, str):
        if "-----BEGIN " in value:
            return value.encode()  # as a name it would be shown
        try:
            with open(value, "rb") as file:
                return file.read()
        except OSError as error:
            raise ValueError("ssl: cannot read %s %r: %s" % (name, value, error))
    if not isinstance(value, (bytes, type(None))):
        # Without its value: it may be the key.
        raise TypeError("ssl: %s must be a file name or bytes" % name)
    return value


def _ders(data, label):
    # What PEM holds under `label`, as DER, which every port takes: RP2 takes no PEM up
    # to MicroPython 1.28.
    parts = data.split(b"-----")  # ..., BEGIN, base64, END
    n = len(parts)
    if n < 3:
        return [data]
    found = [
        binascii.a2b_base64(parts[k + 1]) for k in range(1, n - 1, 4) if parts[k].endswith(label)
    ]
    if not found:
        raise ValueError("no %s in the PEM" % str(label, "utf-8"))
    return found


def text_of(error, server):
    """-> one line on `error`: what is wrong, and with whose certificate; `server` is false
    behind the handshake."""
    text = " ".join(str(error).split())
    number = error.args[0] if error.args else 0
    if isinstance(number, int):
        number = abs(number)  # MicroPython up to 1.27 has either sign
        if text[0] == "-" and number < 256:
            text = str(OSError(number))
    # The system's number, and that of a bignum, which MicroPython puts in errno's range, too.
    if number in (12, 16) or "ALLOC" in text or "emory" in repr(error):
        return "no memory for TLS: it takes 50,000 bytes, 17,000 of them in one piece"
    if server:
        # Mbed TLS's alert and end of stream; EPIPE, ECONNABORTED, ECONNRESET, ENOTCONN (also
        # lwIP's).
        if number in (0x7780, 0x7280, 32, 103, 104, 107, 128):
            return (
                "%s ended the handshake: it wants another certificate from us, or one at all, "
                "or speaks no TLS at this port: %s" % (server, text)
            )
        reasons = []
        if "correctly signed" in text:
            reasons.append("not trusted")
        if "expired" in text or "future" in text:
            now = "%d-%02d-%02d" % time.gmtime()[:3]
            reasons.append("expired or not yet valid (set the clock first: it says %s)" % now)
        if "expected CN" in text:
            reasons.append("for another host")
        if reasons:
            return "certificate of %s: %s" % (server, ", ".join(reasons))
    if not isinstance(error, OSError) or isinstance(number, int) and number > 255:
        text = "TLS: " + text
    return text
