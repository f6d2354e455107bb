"""`client.sock` of umqtt31.simple: what its programs ask of a socket that waits.

They poll it, close it, and say by it how long wait_msg() waits, while the stream below never
waits.  Loaded when a program asks for `client.sock`.
"""

from micropython import const  # isort: skip

import io
import select
import sys

from . import close

_TIMEOUT = const(257)

# What MicroPython's select asks, and the answer to what is not known.
_POLL = const(3)
_EINVAL = const(22)


class Sock(object if sys.implementation.name == "cpython" else io.IOBase):
    """A connection's stream, with its methods and these.  It stays when the connection is
    lost, until the next connect(), and to select it is ready then."""

    def __init__(self, client, stream):
        self._client = client
        self._stream = stream
        self._raw = getattr(stream, "raw", stream)
        self._wait_ms = self._rx_at = self._poller = None

    def __getattr__(self, name):
        return getattr(self._raw, name)

    def setblocking(self, flag):
        """False: the next wait_msg() returns None if nothing is there; umqtt.simple itself
        sets True again with each call."""
        self.settimeout(None if flag else 0)

    def settimeout(self, seconds):
        """wait_msg() raises MQTTError, TIMEOUT, after so long; None or, as umqtt.simple sets
        that by itself, when something came: it waits for ever."""
        self._wait_ms = seconds and int(seconds * 1000)
        self._rx_at = self._client._rx_at

    def wait(self):
        """For wait_msg(): -> what it got, 0 for nothing, -1 if it waits for ever."""
        wait_ms = self._wait_ms
        if not wait_ms or self._client._rx_at != self._rx_at:
            self._wait_ms = None
            if wait_ms != 0:
                return -1
        op = self._client._poll(wait_ms)
        if not op and wait_ms:
            raise self._client._error_of(_TIMEOUT)
        return op

    def pending(self):
        """Bytes that were read and not handled yet, as CPython's TLS sockets have it; a message
        that has its turn later counts as one."""
        return self._client._end - self._client._start + len(self._client._came)

    def close(self):
        """Close the connection without a word, so that the broker publishes the will."""
        if self._client._stream is self._stream:
            close(self._client)

    def ioctl(self, request, flags):
        """For MicroPython's select."""
        if request != _POLL:
            return -_EINVAL
        if self._client._stream is not self._stream or self.pending():
            return flags
        if not self._poller:
            self._poller = select.poll()
        self._poller.register(self._raw, flags)
        for _, found in self._poller.ipoll(0):
            return found
        return 0
