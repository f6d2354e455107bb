"""A link with a round trip time on the loopback, in front of a server.

Every byte arrives half the round trip after it was sent, in both directions and
without a limit to the rate.
"""

import contextlib
import queue
import socket
import threading
import time

from tools.demo.listener import Listener

_READ_BYTES = 65536


class DelayedLink:
    """Forwards its `port` to `server_port` with `round_trip_s`; a context manager."""

    def __init__(self, server_port: int, round_trip_s: float) -> None:
        self._server_port = server_port
        self._delay_s = round_trip_s / 2
        self._listener = Listener(self._join)
        self.port = self._listener.port

    def __enter__(self) -> "DelayedLink":
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _join(self, near: socket.socket) -> None:
        far = socket.create_connection(("127.0.0.1", self._server_port))
        for source, target in ((near, far), (far, near)):
            target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _Direction(source, target, self._delay_s)


class _Direction:
    """One thread reads and stamps, one writes when the time has come."""

    def __init__(self, source: socket.socket, target: socket.socket, delay_s: float) -> None:
        self._source = source
        self._target = target
        self._delay_s = delay_s
        self._under_way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
        _start(self._read)
        _start(self._write)

    def _read(self) -> None:
        data = b"?"
        while data:
            try:
                data = self._source.recv(_READ_BYTES)
            except OSError:
                data = b""
            self._under_way.put((time.monotonic() + self._delay_s, data))

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                due, data = self._under_way.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    break
                self._target.sendall(data)
            self._target.shutdown(socket.SHUT_WR)


def _start(work) -> None:
    threading.Thread(target=work, daemon=True).start()
