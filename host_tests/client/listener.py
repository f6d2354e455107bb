"""A loopback server that plays one broker's part per connection, badly if asked to."""

import contextlib
import socket
import struct
import threading

CLOSE = "close"
RESET = "reset"
HOLD = "hold"
HEARS = "hears"


class Listener:
    """Each connection gets the next of `scripts`: bytes to send, and how it ends.

    CONNECT is read first.  `received` is what the clients sent after it, one
    bytearray per connection.  With HOLD the connection stays open until `with` ends;
    HEARS waits until the client sent something.
    """

    def __init__(self, *scripts):
        self.scripts = scripts
        self.received = []
        self._held = []
        self._is_ending = False
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._thread.join(3)  # ends by itself when the last client has closed
        self._is_ending = True
        for connection in list(self._held):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        if len(self.received) < len(self.scripts):
            socket.create_connection(("127.0.0.1", self.port)).close()  # ends accept()
        self._thread.join(20)
        for connection in [self._socket, *self._held]:
            connection.close()

    def _serve(self):
        for script in self.scripts:
            connection, _ = self._socket.accept()
            self._held.append(connection)
            if self._is_ending:
                return
            self.received.append(bytearray())
            with contextlib.suppress(OSError):
                self._play(connection, *script)

    def _play(self, connection, *script):
        # CONNECT is short, so its length takes one byte.
        head = connection.recv(2, socket.MSG_WAITALL)
        connection.recv(head[1], socket.MSG_WAITALL)
        for step in script:
            if step == RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if step == CLOSE:
                # Closing with unread bytes would be a reset: wait for the client's end.
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
            if step in (RESET, CLOSE):
                self._held.remove(connection)
                connection.close()
            elif step == HEARS:
                self.received[-1] += connection.recv(4096)
            elif step == HOLD:
                while data := connection.recv(4096):
                    self.received[-1] += data
            else:
                connection.sendall(step)
