"""What the examples use of a board's `machine`, on the desk.

Deep sleep ends the process; the UART is a connection to the modem that test_examples
plays at the port in modem.txt, and its DCD line is the file that the modem makes.
"""

import os
import socket


def deepsleep(milliseconds):
    raise SystemExit(0)


class Pin:
    IN = 0
    OUT = 1

    def __init__(self, number, mode=None):
        self._number = number

    def value(self):
        try:
            os.stat("carrier.txt")
        except OSError:
            return 1
        return 0


class UART:
    def __init__(self, number, baudrate, **options):
        with open("modem.txt") as file:
            port = int(file.read())
        self._socket = socket.socket()
        self._socket.connect(socket.getaddrinfo("127.0.0.1", port)[0][-1])
        self._socket.setblocking(False)

    def read(self, n):
        buf = bytearray(n)
        count = self.readinto(buf, n)
        return bytes(buf[:count]) if count else None

    def readinto(self, buf, n):
        if hasattr(self._socket, "readinto"):
            return self._socket.readinto(buf, n)
        try:
            return self._socket.recv_into(buf, n)
        except BlockingIOError:
            return None

    def write(self, buf, off=None, n=None):
        # Few bytes on the loopback: there is room for them.
        data = bytes(buf) if n is None else bytes(buf[off : off + n])
        return self._socket.send(data)
