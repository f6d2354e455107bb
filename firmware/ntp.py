"""Asks an NTP server for the time in the background: SNTP (RFC 4330) over UDP."""

import struct

from asking import Asker, is_address, nonce
from timekeeper import EARLIEST_S

_NTP_PORT = 123
_REFRESH_MS = 6 * 3600 * 1000
# From 1900 to 1970.
_TO_UNIX_S = 2208988800


class NTP(Asker):
    """`server`: name or address, ":PORT" behind it if it is not 123.

    `find_dns()` -> address of a name server, or None where the system below looks names
    up; `clock` as in node.Node.  work() gives seconds since 1970.
    """

    def __init__(self, server, find_dns, clock):
        self._name, _, port = server.partition(":")
        super().__init__("no time from " + self._name, _REFRESH_MS, clock)
        self._port = int(port or _NTP_PORT)
        self._find_dns = find_dns

    def _ask(self):
        dns = None if is_address(self._name) else self._find_dns()
        if dns is None:
            self._ask_time(self._name)
        else:
            self._ask_address(self._name, dns, self._on_address)

    def _ask_time(self, address):
        self._nonce = nonce(8)
        question = b"\x23" + bytes(39) + self._nonce
        self._send(address, self._port, question, self._on_time)

    def _on_address(self, data):
        address = self._address_in(data)
        if address:
            self._ask_time(address)

    def _on_time(self, data):
        if len(data) < 48 or data[24:32] != self._nonce or data[0] & 7 != 4:
            return None  # somebody else's, or an old one
        seconds, fraction = struct.unpack_from(">II", data, 40)
        knows = 0 < data[1] < 16 and data[0] >> 6 != 3 and seconds
        if not seconds & 0x80000000:
            seconds += 1 << 32  # from 2036 on
        if not knows or seconds < _TO_UNIX_S + EARLIEST_S:
            raise OSError("the server does not know the time")
        return seconds - _TO_UNIX_S + (fraction >> 31)
