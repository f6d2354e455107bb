"""A loopback server that plays one broker's part per connection, badly if asked to."""

import contextlib
import socket
import struct
import threading

from tools.demo.listener import Listener

CLOSE = "close"
RESET = "reset"
HOLD = "hold"
HEARS = "hears"


class Broker(Listener):
    """Each connection gets the next of `scripts`: bytes to send, and how it ends.

    CONNECT is read first.  `received` is what the clients sent after it, one bytearray per
    connection.  With HOLD the connection stays open until the client closes it; HEARS waits until
    the client sent something.
    """

    def __init__(self, *scripts):
        self.received = []
        self._scripts = list(scripts)
        self._is_over = threading.Event()
        super().__init__(self._play)

    def __exit__(self, *_):
        self._is_over.wait(20)
        self.close()

    def _play(self, connection):
        self.received.append(bytearray())
        with contextlib.suppress(OSError), connection:
            # CONNECT is short, so its length takes one byte.
            head = connection.recv(2, socket.MSG_WAITALL)
            connection.recv(head[1], socket.MSG_WAITALL)
            for step in self._scripts.pop(0):
                self._take(step, connection)
        if not self._scripts:
            self._is_over.set()

    def _take(self, step, connection):
        if step == RESET:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif step == HEARS:
            self.received[-1] += connection.recv(4096)
        elif step in (CLOSE, HOLD):
            if step == CLOSE:  # with unread bytes it would be a reset
                connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(4096):
                self.received[-1] += data
        else:
            connection.sendall(step)
