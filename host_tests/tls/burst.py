"""A broker that has messages, and writes all of them as one TLS record."""

import contextlib
import socket
import ssl

from host_tests.brokers.certificates import Certificates
from host_tests.standin import packets
from tools.demo.listener import Listener


class Burst:
    """Listens on `port` inside `with`; who connects gets the messages and nothing more."""

    def __init__(self, certificates: Certificates, name: str, messages: list[bytes]) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(
            certificates.file(f"{name}.crt"), certificates.file(f"{name}.key")
        )
        self._record = b"".join(packets.publish(b"burst", one) for one in messages)
        self._listener = Listener(self._serve)
        self.port = self._listener.port

    def __enter__(self) -> "Burst":
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _serve(self, connection: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            self._context.wrap_socket(connection, server_side=True) as link,
        ):
            link.recv(4096)  # CONNECT
            link.sendall(packets.connack(0))
            link.sendall(self._record)
            while link.recv(4096):
                pass
