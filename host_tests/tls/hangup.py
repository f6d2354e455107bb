"""A peer that hears the beginning of a handshake and hangs up."""

import contextlib
import socket
import struct

from tools.demo.listener import Listener

CLOSE = "close"
RESET = "reset"


class HangUp:
    """Listens on `port` inside `with`; each connection ends in CLOSE or RESET."""

    def __init__(self, ending: str) -> None:
        self._ending = ending
        self._listener = Listener(self._serve)
        self.port = self._listener.port

    def __enter__(self) -> "HangUp":
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            head = connection.recv(5, socket.MSG_WAITALL)
            connection.recv(head[3] << 8 | head[4], socket.MSG_WAITALL)
            if self._ending == RESET:
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
