"""Asks servers by UDP in the background, for the time and for addresses: every call returns at
once.

SNTP (RFC 4330), and DNS questions of our own (RFC 1035): the port's getaddrinfo() waits for
many seconds when nobody answers, longer than a watchdog does.
"""

import random
import socket
import struct

from timekeeper import EARLIEST_S

_DNS_PORT = 53
_NTP_PORT = 123
_NTP_REFRESH_MS = 6 * 3600 * 1000
_NAME_REFRESH_MS = 300000
# From 1900 to 1970.
_TO_UNIX_S = 2208988800
_ANSWER_MS = 3000
_FIRST_PAUSE_MS = 2000
_LONGEST_PAUSE_MS = 300000


class Asker:
    """Asks again and again: at once, `refresh_ms` after an answer, and after a failure with
    growing pauses.  `lack`: what there is not without `name`, in words; `find_dns()` -> address
    of a name server, or None where the system below looks names up; `clock` as in node.Node.

    A subclass has `_ask()`, which sends a question by `_send()`, with the method that takes
    its answer; that one returns None if it is none, or if it sent another question.
    `_on_address()` takes that of `_ask_address()`.  `error`: why there is no answer yet, or None.
    """

    def __init__(self, lack, name, find_dns, refresh_ms, clock):
        self._lack = lack
        self._name = name
        self._find_dns = find_dns
        self._refresh_ms = refresh_ms
        self._clock = clock
        self._socket = None
        self._read = None  # reads the awaited answer
        self._nonce = b""
        self._pause_ms = 0
        self._next_at = None  # ticks; None: now
        self._sent_at = 0
        self.error = None

    @property
    def is_asking(self):
        """Is an answer awaited?  Then work() is wanted soon again."""
        return self._socket is not None

    def work(self, has_network=True):
        """Do what is due -> the answer when it just came, else None.  Allocates."""
        now = self._clock.ticks_ms()
        try:
            if self._socket is None:
                # Once due it stays due without a network, although the ticks come round.
                if self._next_at is not None and self._clock.ticks_diff(now, self._next_at) >= 0:
                    self._next_at = None
                if self._next_at is None and has_network:
                    self._ask()
                return None
            data = self._receive()
            if data is not None:
                answer = self._read(data)
                if answer is not None:
                    self._end(answer)
                return answer
            if self._clock.ticks_diff(now, self._sent_at) >= _ANSWER_MS:
                raise OSError("no answer")
        except (OSError, ValueError, IndexError) as error:
            self._fail(error)
        return None

    def _ask_address(self, dns):
        self._nonce = _nonce(2)
        names = self._name.encode().rstrip(b".").split(b".")
        labels = b"".join(bytes([len(one)]) + one for one in names)
        question = self._nonce + b"\x01\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"
        self._send(dns, _DNS_PORT, question, self._on_address)

    def _address_in(self, data):
        # -> the first address in an answer to this question; None: it is no such answer.
        if data[:2] != self._nonce or not data[2] & 0x80:
            return None
        at = _skip_name(data, 12) + 4
        for _ in range(data[7]):
            at = _skip_name(data, at)
            kind = data[at] << 8 | data[at + 1]
            length = data[at + 8] << 8 | data[at + 9]
            at += 10
            if kind == 1 and length == 4 and at + 4 <= len(data):
                return "%d.%d.%d.%d" % tuple(data[at : at + 4])
            at += length
        raise OSError("unknown name")

    def _send(self, address, port, data, read):
        self._close()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        # A connected socket takes no answer of others.
        self._socket.connect(socket.getaddrinfo(address, port)[0][-1])
        self._socket.send(data)
        self._sent_at = self._clock.ticks_ms()
        self._read = read

    def _receive(self):
        try:
            return self._socket.recv(512) or None
        except OSError as error:
            if error.errno in (11, 35):  # EAGAIN
                return None
            raise

    def _end(self, answer):
        self._close()
        self._pause_ms = 0
        self.error = None
        self._next_at = self._clock.ticks_add(self._clock.ticks_ms(), self._refresh_ms)

    def _fail(self, reason):
        self._close()
        self.error = "no %s %s: %s" % (self._lack, self._name, reason)
        self._pause_ms = min(self._pause_ms * 2 or _FIRST_PAUSE_MS, _LONGEST_PAUSE_MS)
        self._next_at = self._clock.ticks_add(self._clock.ticks_ms(), self._pause_ms)

    def _close(self):
        if self._socket:
            self._socket.close()
            self._socket = None


class NTP(Asker):
    """The time: work() gives seconds since 1970.

    `server`: name or address, ":PORT" behind it if it is not 123.
    """

    def __init__(self, server, find_dns, clock):
        name, _, port = server.partition(":")
        super().__init__("time from", name, find_dns, _NTP_REFRESH_MS, clock)
        self._port = int(port or _NTP_PORT)

    def _ask(self):
        dns = None if is_address(self._name) else self._find_dns()
        if dns is None:
            self._ask_time(self._name)
        else:
            self._ask_address(dns)

    def _ask_time(self, address):
        self._nonce = _nonce(8)
        question = b"\x23" + bytes(39) + self._nonce
        self._send(address, self._port, question, self._on_time)

    def _on_address(self, data):
        address = self._address_in(data)
        if address:
            self._ask_time(address)

    def _on_time(self, data):
        if len(data) < 48 or data[24:32] != self._nonce or data[0] & 7 != 4:
            return None  # not from this server, or an old answer
        seconds, fraction = struct.unpack_from(">II", data, 40)
        knows = 0 < data[1] < 16 and data[0] >> 6 != 3 and seconds
        if not seconds & 0x80000000:
            seconds += 1 << 32  # from 2036 on
        if not knows or seconds < _TO_UNIX_S + EARLIEST_S:
            raise OSError("the server does not know the time")
        return seconds - _TO_UNIX_S + (fraction >> 31)


class Names(Asker):
    """The address of the broker's `name`, looked up before the client would wait for it.

    Without an answer from the name server nobody connects by name.  An address that was found
    once stays good for then; work() keeps it up to date.
    """

    def __init__(self, name, find_dns, clock):
        super().__init__("address of", name, find_dns, _NAME_REFRESH_MS, clock)
        self._address = None
        self._is_answered = False  # at least

    @property
    def is_ready(self):
        """Would look_up() return soon?"""
        return self._address is not None or self._is_answered

    def look_up(self, server, port):
        # A name server answered that it knows no address.  The port may know one.
        return socket.getaddrinfo(self._address or server, port, 0, socket.SOCK_STREAM)[0]

    def _ask(self):
        self._is_answered = False
        self._ask_address(self._find_dns())

    def _on_address(self, data):
        try:
            address = self._address_in(data)
        except (OSError, IndexError):
            self._is_answered = True
            raise
        if address:
            self._address = address
        return address


def _nonce(count):
    return bytes([random.getrandbits(8) for _ in range(count)])


def is_address(name):
    return all(part and all(c in "0123456789" for c in part) for part in name.split("."))


def _skip_name(data, at):
    while data[at]:
        if data[at] >= 0xC0:  # a pointer ends it
            return at + 2
        at += 1 + data[at]
    return at + 1
