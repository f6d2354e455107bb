"""Peers and networks on the loopback as they are now and then: that hold back, hurry."""

import contextlib
import socket
import ssl

from host_tests.brokers.certificates import Certificates
from host_tests.standin import packets
from tools.demo.listener import Listener
from tools.demo.proxy import Proxy

_NODELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


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


class Relay(Proxy):
    """A proxy that takes orders from another process: a connection to `control` is for the next
    of `orders`, its own methods."""

    def __init__(self, server_port: int, orders: tuple = ()) -> None:
        super().__init__(server_port)
        self._orders = list(orders)
        self._office = Listener(self._obey)
        self.control = self._office.port

    def close(self) -> None:
        """As any proxy's: without a word, as far as TLS goes."""
        self._office.close()
        super().close()

    def _join(self, client: socket.socket) -> None:
        client.setsockopt(*_NODELAY)
        super()._join(client)

    def _obey(self, connection: socket.socket) -> None:
        getattr(self, self._orders.pop(0))()
        connection.close()
