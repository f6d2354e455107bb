"""Looks the broker's name up in the background, before the client would wait for it.

Without an answer from the name server nobody connects by name: the port's getaddrinfo()
would wait longer than the watchdog.  An address that was found once stays good for then.
"""

import socket

from asking import Asker

_REFRESH_MS = 300000


class Names(Asker):
    """`name` of the broker; `find_dns()` -> address of the name server; `clock` as in
    node.Node.  work() keeps the address up to date."""

    def __init__(self, name, find_dns, clock):
        super().__init__("no address of " + name, _REFRESH_MS, clock)
        self._name = name
        self._find_dns = find_dns
        self._address = None
        self._is_answered = False  # at least

    @property
    def is_ready(self):
        """Would look_up() return soon?"""
        return self._address is not None or self._is_answered

    def look_up(self, server, port):
        # A name server that knows no address has answered at once; the port may know more.
        return socket.getaddrinfo(self._address or server, port, 0, socket.SOCK_STREAM)[0]

    def _ask(self):
        self._is_answered = False
        self._ask_address(self._name, self._find_dns(), self._on_address)

    def _on_address(self, data):
        try:
            address = self._address_in(data)
        except (OSError, IndexError):
            self._is_answered = True
            raise
        if address:
            self._address = address
        return address
