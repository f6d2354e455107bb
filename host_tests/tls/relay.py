"""A TCP relay on the loopback that passes bytes one at a time, or none until it may.

A connection to `control` takes the next of `orders`: "hold" stops what goes from the
client to the server, "release" lets it go on, "cut" ends both without a word.
"""

import contextlib
import socket
import threading

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
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._control = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.control = self._control.getsockname()[1]

    def __enter__(self) -> "Relay":
        for work in (self._accept, self._obey):
            threading.Thread(target=work, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._may_pass.set()
        for listener in (self._listener, self._control):
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._ends += [client, server]
                for source, target, is_held in (client, server, True), (server, client, False):
                    target.setsockopt(*_NODELAY)
                    work = threading.Thread(
                        target=self._pass_on, args=(source, target, is_held), daemon=True
                    )
                    work.start()

    def _obey(self) -> None:
        with contextlib.suppress(OSError):
            for order in self._orders:
                connection, _ = self._control.accept()
                if order == "hold":
                    self._may_pass.clear()
                elif order == "cut":
                    for end in self._ends:
                        end.shutdown(socket.SHUT_RDWR)
                else:
                    self._may_pass.set()
                connection.close()

    def _pass_on(self, source: socket.socket, target: socket.socket, is_held: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(self._piece_bytes):
                if is_held:
                    self._may_pass.wait()
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
