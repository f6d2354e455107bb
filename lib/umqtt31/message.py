"""Message: a received (or given up) PUBLISH, seen in place in a packet buffer.

One object serves every message of a client and is valid until the handler
returns.  Only `topic` and `payload` allocate.  MQTT 3.1 §3.3.
"""

import io
import sys

from . import topic as _topic
from .packet import read_id, body_start

if sys.implementation.name == "cpython":
    _Reader = memoryview

    def _copy_part(reader, start, n, target):
        target[:n] = reader[start : start + n]

else:
    # A BytesIO over a bytearray reads from its middle without making a slice.
    _Reader = io.BytesIO

    def _copy_part(reader, start, n, target):
        reader.seek(start)
        reader.readinto(target, n)


class Message:
    """`qos`, `retain` and `dup` (bool), `packet_id` (0 at QoS 0); `topic_len` and
    `payload_len` in bytes; `message[i]` is byte `i` of the payload."""

    def __init__(self, buf):
        self._home = self._buf = buf
        self._reader = _Reader(buf)
        # All attributes exist from the start: a new one would allocate.
        self.qos = self.packet_id = self.topic_len = self.payload_len = 0
        self.retain = self.dup = False
        self._start = self._payload = 0

    def read_packet(self, buf, n):
        """Show the whole packet `buf[:n]`, which this client wrote."""
        self._buf = buf
        start = body_start(buf)
        self._decode(buf[0], start, n - start)

    def read(self, first, length):
        """Show the body at the start of the home buffer -> False if malformed."""
        self._buf = self._home
        return self._decode(first, 0, length)

    def _decode(self, first, start, length):
        self.qos = qos = first >> 1 & 3
        self.retain = bool(first & 1)
        self.dup = bool(first & 8)
        self.packet_id = 0
        if qos == 3 or length < 2:  # 31-2.1-QOS3
            return False
        self.topic_len = n = read_id(self._buf, start)
        self._start = start + 2
        self._payload = body = start + 2 + n
        end = start + length
        if qos:
            self._payload += 2
            if body + 2 <= end:
                self.packet_id = read_id(self._buf, body)
        self.payload_len = end - self._payload
        # 31-2.4-ID: 0 is no packet id; a topic has at least one character.
        return n > 0 and self.payload_len >= 0 and bool(self.packet_id or not qos)

    def topic_is(self, name):
        """Is the topic just `name` (bytes)?"""
        n = self.topic_len
        if len(name) != n:
            return False
        start = self._start
        for i in range(n):
            if self._buf[start + i] != name[i]:
                return False
        return True

    def matches(self, pattern):
        """Does the topic match the filter `pattern` (bytes)?"""
        return _topic.matches(pattern, self._buf, self._start, self._start + self.topic_len)

    def topic_into(self, target):
        """Copy the topic to the start of `target` -> bytes copied (what fits)."""
        return self._into(target, self._start, self.topic_len)

    def payload_into(self, target):
        """Copy the payload to the start of `target` -> bytes copied (what fits)."""
        return self._into(target, self._payload, self.payload_len)

    def __getitem__(self, index):
        n = self.payload_len
        if not -n <= index < n:
            raise IndexError("payload index out of range")
        return self._buf[self._payload + index + (n if index < 0 else 0)]

    @property
    def topic(self):
        """The topic as new bytes."""
        return bytes(memoryview(self._buf)[self._start : self._start + self.topic_len])

    @property
    def payload(self):
        """The payload as new bytes."""
        start = self._payload
        return bytes(memoryview(self._buf)[start : start + self.payload_len])

    def _into(self, target, start, n):
        n = min(n, len(target))
        if self._buf is self._home:
            _copy_part(self._reader, start, n, target)
        else:
            for i in range(n):
                target[i] = self._buf[start + i]
        return n
