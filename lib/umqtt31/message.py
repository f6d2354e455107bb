"""Message: a received PUBLISH, seen in place in the receive buffer.

One object serves every message of a client and is valid until the handler
returns.  Only `topic` and `payload` allocate.  MQTT 3.1 §3.3.
"""

from io import BytesIO

from .topic import matches

# A builtin is found only behind a miss in the module and a linear search.
_bytes = bytes


class Message:
    """`qos`, `retain` and `dup` (bool), `packet_id` (0 at QoS 0); `topic_len` and
    `payload_len` in bytes; `message[i]` is byte `i` of the payload."""

    def __init__(self, buf):
        # All attributes exist from the start: a new one would allocate.
        self.use(buf)
        # A BytesIO reads from its middle without making a slice, but it keeps a copy of
        # a bytearray, so that what it reads has to be written to it first.
        self._reader = BytesIO(buf)
        self.qos = self.packet_id = self.topic_len = self.payload_len = self._start = 0
        self.retain = self.dup = False
        # A method is found only behind a search among all attributes.
        self.copies = self.copies

    def use(self, buf):
        """Messages stand in `buf` from now on.  Allocates."""
        # Of a view slices can be copied without copying them first.
        self._buf = memoryview(buf)

    def read(self, first, topic_len, length):
        """Decode a body of `length` bytes, the rest of which, from the topic on, is at
        the start of the buffer -> False if malformed."""
        self.qos = qos = first >> 1 & 3
        self.retain = first & 1 > 0
        self.dup = first & 8 > 0
        self.topic_len = start = topic_len
        length -= 2
        packet_id = 0
        if qos:
            start += 2
            if qos == 3 or start > length:  # 31-2.1-QOS3
                return False
            packet_id = self._buf[topic_len] << 8 | self._buf[topic_len + 1]
            if not packet_id:  # 31-2.4-ID
                return False
        self.packet_id = packet_id
        self._start = start
        self.payload_len = length - start
        return start <= length and topic_len > 0

    def skip(self, first, framing):
        """A message too large for the buffer: only what `framing` knows of it -> False if
        malformed."""
        self.qos = first >> 1 & 3
        self.packet_id = framing.packet_id
        self.topic_len = framing.field
        self.payload_len = framing.payload_len
        return self.topic_len > 0 and (not self.qos or self.qos != 3 and self.packet_id > 0)

    def topic_is(self, name):
        """Is the topic just `name` (bytes)?"""
        n = self.topic_len
        if len(name) != n:
            return False
        buf = self._buf
        for i in range(n):
            if buf[i] - name[i]:  # where a str is a TypeError
                return False
        return True

    def matches(self, pattern):
        """Does the topic match the filter `pattern` (bytes)?"""
        return matches(pattern, self._buf, 0, self.topic_len)

    def topic_into(self, target):
        """Copy the topic to the start of `target` -> bytes copied (what fits)."""
        return self._copy(0, self.topic_len, target)

    def payload_into(self, target):
        """Copy the payload to the start of `target` -> bytes copied (what fits)."""
        return self._copy(self._start, self.payload_len, target)

    def copies(self):
        """-> topic and payload as new bytes: quicker than the attributes."""
        view = self._buf
        start = self._start
        return _bytes(view[: self.topic_len]), _bytes(view[start : start + self.payload_len])

    def _copy(self, start, n, target):
        reader = self._reader
        reader.seek(0)
        reader.write(self._buf)
        reader.seek(start)
        if n > len(target):
            n = len(target)
        return reader.readinto(target, n) if n else 0

    def __getitem__(self, index):
        if not 0 <= index < self.payload_len:
            raise IndexError("payload has %d bytes" % self.payload_len)
        return self._buf[self._start + index]

    def __getattr__(self, name):
        """`topic` and `payload`: new bytes, the only ones that allocate."""
        # Not properties, which would slow every store to an attribute down.
        view = self._buf
        start = self._start
        if name == "topic":
            return _bytes(view[: self.topic_len])
        if name == "payload":
            return _bytes(view[start : start + self.payload_len])
        raise AttributeError(name)
