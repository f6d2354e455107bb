"""A peer that hears the beginning of a handshake and hangs up."""

import contextlib
import socket
import struct
import threading

CLOSE = "close"
RESET = "reset"


class HangUp:
    """Listens on `port` inside `with`; each connection ends in CLOSE or RESET."""

    def __init__(self, ending: str) -> None:
        self._ending = ending
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> "HangUp":
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                head = connection.recv(5, socket.MSG_WAITALL)
                connection.recv(head[3] << 8 | head[4], socket.MSG_WAITALL)
                if self._ending == RESET:
                    linger = struct.pack("ii", 1, 0)
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.close()
