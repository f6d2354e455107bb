"""The listening half of a server on the loopback: a free port, and whoever calls there."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Self


class Listener:
    """Hands each connection to `port`, chosen freely, to `serve`, from creation to `close()`.

    `serve` is called in one thread, so it starts what takes long in another.
    """

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Accept no more; connections that are open stay so."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._serve(connection)
