"""Peers and networks on the loopback as they are now and then: that hang up, hold back, hurry."""

import contextlib
import socket
import ssl
import struct
import threading

from host_tests.brokers.certificates import Certificates
from host_tests.standin import packets
from tools.demo.listener import Listener

_NODELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
_RESET = (socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def hanging_up(is_reset: bool) -> Listener:
    """A peer that hears the beginning of a handshake, and closes or resets the connection."""

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            head = connection.recv(5, socket.MSG_WAITALL)
            connection.recv(head[3] << 8 | head[4], socket.MSG_WAITALL)
            if is_reset:
                connection.setsockopt(*_RESET)

    return Listener(serve)


def bursting(certificates: Certificates, name: str, messages: list[bytes]) -> Listener:
    """A broker that writes all of its messages as one TLS record, and nothing more."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.file(f"{name}.crt"), certificates.file(f"{name}.key"))

    def serve(connection: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            context.wrap_socket(connection, server_side=True) as link,
        ):
            link.recv(4096)  # CONNECT
            link.sendall(packets.connack(0))
            link.sendall(b"".join(packets.publish(b"burst", one) for one in messages))
            while link.recv(4096):
                pass

    return Listener(serve)


class Relay:
    """Relays `port` to `server_port` in pieces of at most `piece_bytes`, inside `with`.

    A connection to `control` takes the next of `orders`: "hold" stops what goes from the
    client to the server, "release" lets it go on, "cut" ends both without a word.
    """

    def __init__(self, server_port: int, piece_bytes: int = 65536, orders: tuple = ()) -> None:
        self._server_port = server_port
        self._piece_bytes = piece_bytes
        self._orders = list(orders)
        self._ends: list[socket.socket] = []
        self._may_pass = threading.Event()
        self._may_pass.set()
        self._listeners = Listener(self._join), Listener(self._obey)
        self.port, self.control = (one.port for one in self._listeners)

    def __enter__(self) -> "Relay":
        return self

    def __exit__(self, *_: object) -> None:
        self._may_pass.set()
        for one in self._listeners:
            one.close()

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
