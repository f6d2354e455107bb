"""Stands in for the module `socket`.  Runs under CPython and MicroPython."""


class Sockets:
    """`open_socket(host, port)` gives each stream, or raises OSError."""

    SOCK_STREAM = 1
    _address = None, None  # until a name is looked up here

    def __init__(self, open_socket):
        self._open_socket = open_socket

    def getaddrinfo(self, server, port, *more):
        self._address = server, port
        return [(2, 1, 0, "", self._address)]

    def socket(self, *more):
        return self._open_socket(*self._address)
