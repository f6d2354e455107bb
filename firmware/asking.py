"""Asks a server by UDP in the background: every call returns at once.

Also the DNS question of our own (RFC 1035) that names need: the port's getaddrinfo() waits
for many seconds when nobody answers, longer than a watchdog does.
"""

import random
import socket

_DNS_PORT = 53
_ANSWER_MS = 3000
_FIRST_PAUSE_MS = 2000
_LONGEST_PAUSE_MS = 300000


class Asker:
    """Asks again and again: at once, `refresh_ms` after an answer, and after a failure with
    growing pauses.  `about`: what is asked for, in words; `clock` as in node.Node.

    A subclass has `_ask()`, which sends a question by `_send()`, with the method that takes
    its answer; that one returns None if it is none, or if it sent another question.
    `error` is why there is no answer yet, or None.
    """

    def __init__(self, about, refresh_ms, clock):
        self._about = about
        self._refresh_ms = refresh_ms
        self._clock = clock
        self._socket = None
        self._read = None  # takes the answer that is awaited
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
                # Once due it stays so, however long there is no network: ticks come round.
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

    def _ask_address(self, name, dns, read):
        self._nonce = nonce(2)
        labels = b"".join(bytes([len(one)]) + one for one in name.encode().split(b"."))
        question = self._nonce + b"\x01\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"
        self._send(dns, _DNS_PORT, question, read)

    def _address_in(self, data):
        # -> the first address in an answer to this question; None: it is none.
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
        # Connected, so that nobody else's answer comes in.
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
        self.error = "%s: %s" % (self._about, reason)
        self._pause_ms = min(self._pause_ms * 2 or _FIRST_PAUSE_MS, _LONGEST_PAUSE_MS)
        self._next_at = self._clock.ticks_add(self._clock.ticks_ms(), self._pause_ms)

    def _close(self):
        if self._socket:
            self._socket.close()
            self._socket = None


def nonce(count):
    """So many bytes that nobody guesses."""
    return bytes([random.getrandbits(8) for _ in range(count)])


def is_address(name):
    return all(part and all(c in "0123456789" for c in part) for part in name.split("."))


def _skip_name(data, at):
    while data[at]:
        if data[at] >= 0xC0:  # a pointer ends it
            return at + 2
        at += 1 + data[at]
    return at + 1
