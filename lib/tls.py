"""MicroPython's module `tls` for a computer, where CPython's `ssl` does its work.

As `micropython` beside it, it is never copied to a board, whose own is found first.  What goes
wrong is told in the words of Mbed TLS.
"""

import os
import select
import socket
import ssl
import tempfile
import weakref

PROTOCOL_TLS_CLIENT = ssl.PROTOCOL_TLS_CLIENT
CERT_NONE = ssl.CERT_NONE

# Of Mbed TLS: the peer sent an alert; end of stream; one of many others.
_ALERT = -0x7780
_ENDED = -0x7280
_OTHER = -0x7200

_WAITS = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
# Debian 12's 3.11.2 takes a stream that ends where TLS goes on for an orderly end.
_ENDS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)

# OpenSSL's words for what is wrong with a certificate -> those of Mbed TLS.
_WORDS = (
    ("expired", "The certificate validity has expired"),
    ("not yet valid", "The certificate validity starts in the future"),
    ("mismatch", "The certificate Common Name (CN) does not match with the expected CN"),
    ("", "The certificate is not correctly signed by the trusted CA"),
)

# What a later connection of the same context to the same server may resume.
_sessions = weakref.WeakKeyDictionary()


class SSLContext(ssl.SSLContext):
    """CPython's SSLContext, loaded from DER as MicroPython's is; a chain may be PEM."""

    @property
    def verify_mode(self):
        return super().verify_mode

    @verify_mode.setter
    def verify_mode(self, mode):
        if not mode:
            self.check_hostname = False  # which MicroPython has no name for
        ssl.SSLContext.verify_mode.__set__(self, mode)

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
    return ssl.DER_cert_to_PEM_cert(der).replace("CERTIFICATE", label).encode()


def _write(path, data):
    with open(path, "wb") as file:
        file.write(data)


class _TLSError(OSError):
    """Its number is none of the system's."""

    errno = None

    def __str__(self):
        return self.args[1]


class TLSStream:
    """TLS over a socket that may still be connecting; resumes the last session."""

    def __init__(self, sock, context, server):
        self.raw = self  # for select and asyncio
        self._sock = sock
        self._context = context
        self._server = server
        self._is_wrapped = self._has_read = False

    def __getattr__(self, name):
        return getattr(self._sock, name)

    def readinto(self, buf, n):
        """As MicroPython's; the handshake goes on here."""
        n = self._try("recv_into", memoryview(buf)[:n])
        if n == 0 and not (self._has_read or self._sock.version()):
            raise _TLSError(_ENDED, "end of stream")
        self._has_read = self._has_read or bool(n)
        return n

    def write(self, buf, off, n):
        """As MicroPython's; the handshake goes on here."""
        return self._try("send", memoryview(buf)[off : off + n])

    def _try(self, name, data):
        try:
            return getattr(self._sock, name)(data) if self._is_ready() else None
        except _WAITS:
            return None
        except _ENDS as error:
            raise _TLSError(_ENDED, str(error)) from error
        except ssl.SSLCertVerificationError as error:
            words = [ours for theirs, ours in _WORDS if theirs in str(error)]
            raise ValueError(words[0]) from error
        except ssl.SSLError as error:
            number = _ALERT if "ALERT" in str(error) else _OTHER
            raise _TLSError(number, str(error)) from error

    def close(self):
        """Close the socket and keep the session."""
        if self._is_wrapped and self._sock.version():  # the handshake was completed
            session = self._sock.session
            if session.has_ticket:
                _sessions[self._context] = self._server, session
        self._sock.close()

    def _is_ready(self):
        # CPython makes the TLS object only over a socket that is connected.
        if self._is_wrapped:
            return True
        poll = select.poll()
        poll.register(self._sock, select.POLLOUT)
        if not poll.poll(0):
            return False
        number = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            raise OSError(number, os.strerror(number))
        # Taken out, and put back by close(): a session is not tried again after a handshake
        # that failed.
        server, session = _sessions.pop(self._context, (None, None))
        self._sock = self._context.wrap_socket(
            self._sock,
            server_hostname=self._server,
            do_handshake_on_connect=False,
            session=session if server == self._server else None,
        )
        self._is_wrapped = True
        return True


wrap = TLSStream
