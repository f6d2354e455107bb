"""What an error of TLS says to a person.

Loaded with the first one.  Mbed TLS tells its reasons in a ValueError's text or as a
negative number, OpenSSL in words; docs/guides/tls.md says what cannot be told apart.
"""

import time

from micropython import const

# Of Mbed TLS: the peer sent an alert.
_ALERT = const(-0x7780)
# Both in errno's range, where MicroPython puts them: the system's, and a bignum's.
_ENOMEM = const(12)
_NO_BIGNUM = const(16)


def text_of(error, server):
    """-> one line on `error`: what is wrong, and with whose certificate; `server` is None
    behind the handshake."""
    text = str(error)
    number = error.args[0] if error.args and isinstance(error, OSError) else 0
    if (
        isinstance(error, MemoryError)
        or number in (_ENOMEM, _NO_BIGNUM)
        or "ALLOC" in text
        or "emory" in text
    ):
        return "no memory for TLS: it takes 50,000 bytes, 17,000 of them in one piece"
    if server and (number == _ALERT or "ALERT" in text):
        return (
            "%s ended the handshake: it wants another certificate from us, or one at all, "
            "or speaks no TLS at this port (%s)" % (server, error.args[-1])
        )
    reasons = []
    if "correctly signed" in text:
        reasons.append("not trusted")
    if "expired" in text or "future" in text or "not yet" in text:
        now = "%d-%02d-%02d" % time.gmtime()[:3]
        reasons.append("expired or not yet valid (set the clock first: it says %s)" % now)
    if "expected CN" in text or "mismatch" in text:
        reasons.append("for another host")
    if not reasons and "CERTIFICATE_VERIFY" in text:
        reasons.append("not trusted")
    if reasons and server:
        return "certificate of %s: %s" % (server, ", ".join(reasons))
    text = " ".join(text.split())
    if number == 0:
        return "TLS: " + text
    if text == str(number) and isinstance(number, int) and number < 0:
        # MicroPython up to 1.27: a number of Mbed TLS, or one of the socket below.
        return "TLS: " + text if number <= -256 else str(OSError(-number))
    return text
