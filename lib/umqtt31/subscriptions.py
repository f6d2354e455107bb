"""The filters a client remembers, and the SUBSCRIBE or UNSUBSCRIBE that waits.

At level 3 a broker cannot say that it kept the session, so all filters are sent
again on every connection.  One packet at a time waits for its answer.  No I/O
and no clock.  MQTT 3.1 §3.8 to §3.11.
"""

from time import ticks_diff

from micropython import const

from .errors import FULL, TOO_LARGE, MQTTError
from .packet import DUP, SUBSCRIBE, UNSUBSCRIBE, write_filters

_MAX_TRIES = const(6)


class Subscriptions:
    """`entries`: lists [filter, QoS, granted QoS], in the order they are sent."""

    def __init__(self, session, most, size):
        self.entries = []
        self._most = most
        self._size = size
        self._removals = []
        self._session = session
        self.restart()

    def restart(self):
        """A new connection: everything is to be sent again."""
        self._first = self._end = 0  # what waits of the entries; the rest is unsent
        self._is_waiting = False
        self._session.control_id = 0

    def is_idle(self):
        """Is everything sent and answered?"""
        return not self._is_waiting and not self._removals and self._first == len(self.entries)

    def add(self, entries):
        """Send `entries` and remember them in place of those with the same filter.

        Only while idle, as `remove()`.  Raises MQTTError: FULL, TOO_LARGE.
        """
        kept = self._without(entries)
        if len(kept) + len(entries) > self._most:
            raise MQTTError(FULL, "too many filters: raise max_subscriptions")
        self._check_size(entries)
        self._replace(kept)
        self.entries.extend(entries)

    def remove(self, entries):
        """Send that these are wanted no more, and forget them."""
        self._check_size(entries)
        self._replace(self._without(entries))
        self._removals = entries

    def _check_size(self, entries):
        if not entries:
            raise ValueError("no filter given")
        n = 7
        for entry in entries:
            n += len(entry[0]) + 3
        if n > self._size:
            raise MQTTError(TOO_LARGE)

    def _without(self, entries):
        names = [entry[0] for entry in entries]
        return [entry for entry in self.entries if entry[0] not in names]

    def _replace(self, entries):
        self.entries = entries
        self._first = self._end = len(entries)

    def next(self, buf, now, retry_ms):
        """Put the packet that is due into `buf` -> its length, or 0 if none is."""
        dup = 0
        if self._is_waiting:
            if not retry_ms or self.retry_in(now, retry_ms) > 0:
                return 0
            dup = DUP  # 31-2.1-DUP, RT-OBJECTS
            self._tries = min(self._tries + 1, _MAX_TRIES)
        elif self.is_idle():
            return 0
        else:
            self._tries = 0
            self._session.take_id()
            self._is_waiting = True
        self._sent = now
        packet_id = self._session.control_id
        if self._removals:
            return write_filters(
                buf,
                self._size,
                UNSUBSCRIBE | dup,
                packet_id,
                self._removals,
                0,
                len(self._removals),
            )
        if not dup:
            self._end = len(self.entries)
        while True:
            n = write_filters(
                buf, self._size, SUBSCRIBE | dup, packet_id, self.entries, self._first, self._end
            )
            if n:
                return n
            self._end -= 1  # those that do not fit go with the next packet

    def retry_in(self, now, retry_ms):
        """Ticks until the packet that waits is sent again."""
        return (retry_ms << self._tries) - ticks_diff(now, self._sent)

    def is_waiting(self):
        """Does a packet wait for its answer?"""
        return self._is_waiting

    def on_suback(self, packet_id, buf, length):
        """SUBACK with the body `buf[:length]` -> False if it breaks the protocol."""
        if not self._is_waiting or packet_id != self._session.control_id or self._removals:
            return True  # a late answer
        if length - 2 != self._end - self._first:
            return False
        for k in range(2, length):
            self.entries[self._first][2] = buf[k]  # 31-3.9-SUBACK: in order
            self._first += 1
        self._done()
        return True

    def on_unsuback(self, packet_id):
        """UNSUBACK: the removals are confirmed."""
        if self._is_waiting and packet_id == self._session.control_id and self._removals:
            self._removals = []
            self._done()

    def _done(self):
        self._is_waiting = False
        self._session.control_id = 0
