"""A TCP relay on the loopback that passes bytes one at a time, or none until it may.

A connection to `control` takes the next of `orders`: "hold" stops what goes from the
client to the server, "release" lets it go on, "cut" ends both without a word.
"""

import contextlib
import socket
import threading

from tools.demo.listener import Listener

_NODELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Relay:
    """Relays `port` to `server_port` in pieces of at most `piece_bytes`, inside `with`."""

    def __init__(self, server_port: int, piece_bytes: int = 65536, orders: tuple = ()) -> None:
        self._server_port = server_port
        self._piece_bytes = piece_bytes
        self._orders = list(orders)
        self._ends: list[socket.socket] = []
        self._may_pass = threading.Event()
        self._may_pass.set()
        self._listener = Listener(self._join)
        self._control = Listener(self._obey)
        self.port = self._listener.port
        self.control = self._control.port

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *_: object) -> None:
        self._may_pass.set()
        self._listener.close()
        self._control.close()

    def _join(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._server_port))
        self._ends += [client, server]
        for source, target, is_held in (client, server, True), (server, client, False):
            target.setsockopt(*_NODELAY)
            work = (source, target, is_held)
            threading.Thread(target=self._pass_on, args=work, daemon=True).start()

    def _obey(self, connection: socket.socket) -> None:
        order = self._orders.pop(0)
        if order == "hold":
            self._may_pass.clear()
        elif order == "cut":
            _end(*self._ends)
        else:
            self._may_pass.set()
        connection.close()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_held: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(self._piece_bytes):
                if is_held:
                    self._may_pass.wait()
                target.sendall(data)
        _end(source, target)


def _end(*connections: socket.socket) -> None:
    for one in connections:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
