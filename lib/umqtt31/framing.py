"""Framing: what came in, cut into whole packets.

Its user reads up to `need` bytes to the start of `into` and calls `take()`; a stream
fills a buffer from its start only, so `into` is another buffer now and then.  Never
reads by itself, never raises.  A packet larger than the buffer is passed over, but for
what is needed to acknowledge it.  MQTT 3.1 §2.1.
"""

from struct import pack_into

from micropython import const

_PIECE_BYTES = const(64)

MALFORMED = 1  # what take() returns in place of a packet's first byte


class Framing:
    """One connection after another through the same buffers.

    After `take()` returned a packet's `first` byte: `field` is the number in the first two
    bytes of its body, `length` counts these and the rest, which is at the start of `rx`
    until `take()` is called again; if `is_oversize`, it is a PUBLISH of which only
    `field`, `packet_id` and `payload_len` are known.  `into` is `head` only at the start
    of a packet; then its caller may look at the four bytes there before `take()`.
    `on_large(length)`, if set, is asked before a PUBLISH is passed over as too large; it
    may give the framing a larger buffer by `use()`.
    """

    def __init__(self, size):
        # All attributes exist from the start: a new one would allocate.
        self.use(bytearray(size + _PIECE_BYTES))
        self.on_large = None
        self.head = bytearray(8)
        self._piece = bytearray(_PIECE_BYTES)
        self.field = self.length = self.packet_id = self.payload_len = self.first = 0
        self.is_oversize = False
        self.reset()

    def use(self, rx):
        """Take packets into `rx`, 64 bytes larger than they may be; none may be half read."""
        self.rx = rx
        self.size = len(rx) - _PIECE_BYTES

    def reset(self):
        """A new connection: nothing is half read."""
        self.into = self.head
        self.need = 4
        self.have = self._left = 0  # bytes in `head`; of the body still to come

    def take(self, n):
        """`n` bytes were read -> first byte of a whole packet, 0 if more has to come,
        MALFORMED.  With `n` 0 it looks at what came along with the packet before."""
        if self._left == n and n and self.into is self.rx and not self.is_oversize:
            # All of a body in one piece, and a header in one: the fast ways through the
            # rest of this class, for what most often comes.
            self._left = 0
            if not self.have:
                self.need = 4
                self.into = self.head
                return self.first
            return self._await_body()
        if self._left:
            return self._take_body(n)
        head = self.head
        if n == 4 and self.into is head:
            n = head[1]
            if 2 < n < 128 and n <= self.size and head[0] > 15:
                self.first = head[0]
                self.field = head[2] << 8 | head[3]
                self.length = n
                self.is_oversize = False
                self.need = self._left = n - 2
                self.into = self.rx
                return 0
            if n == 2 and head[0] > 15:
                self.first = n = head[0]
                self.field = head[2] << 8 | head[3]
                self.length = 2
                self.is_oversize = False
                return n
            n = 4
        if self.into is not head:
            for i in range(n):
                head[self.have + i] = self._piece[i]
        self.have += n
        return self._take_head()

    def _take_body(self, n):
        # The first piece of a body went straight to its place.
        got = self.length - 2 - self._left
        self._left -= n
        if self.is_oversize:
            if self.first & 6 and 0 <= got - self.field < 2:
                self.packet_id = self.packet_id << 8 | self.rx[0]
        elif got:
            pack_into("64s", self.rx, got, self._piece)
        return self._await_body()

    def _await_body(self):
        # Say what to read next, and where to; or the packet is whole.
        left = self._left
        if not left:
            self.need = 4 - self.have
            self.into = self._piece if self.have else self.head
            return self.first
        self.into = self.rx
        got = self.length - 2 - left
        if self.is_oversize:
            # Topic, packet id, payload: the id is read byte by byte, the rest goes
            # as it comes.
            if got < self.field:
                left = self.field - got
            elif self.first & 6 and got < self.field + 2:
                left = 1
            if left > self.size:
                left = self.size
        elif got:
            self.into = self._piece
            if left > _PIECE_BYTES:
                left = _PIECE_BYTES
        self.need = left
        return 0

    def _take_head(self):
        # `head` is the header and, so that most packets come in one piece, the first
        # two bytes of the body.  Only behind a packet of two bytes these are of the next.
        head = self.head
        pos = 1
        length = 0
        byte = 128
        # 31-2.1-LEN: four groups of seven bits at most, the lowest first.
        while byte > 127 and pos < self.have and pos < 5:
            byte = head[pos]
            length |= (byte & 127) << 7 * (pos - 1)
            pos += 1
        self.first = head[0]
        self.length = length
        self.is_oversize = length > self.size
        if not self.first & 0xF0 or byte > 127 and pos > 4:
            return MALFORMED
        if self.is_oversize and self.first & 0xF0 != 0x30:
            return MALFORMED
        byte = pos + (3 if byte > 127 else 2 if length > 1 else length)  # its end
        self.need = byte - self.have
        if self.need > 0:
            self.into = self._piece
            return 0
        return self._end_head(pos, byte)

    def _end_head(self, pos, end):
        # All of the header is there, and the start of the body at `pos`, up to `end`.
        head = self.head
        self.field = head[pos] << 8 | head[pos + 1]
        self._left = self.length - 2 if self.length > 2 else 0
        self.have -= end
        for i in range(self.have):
            head[i] = head[end + i]
        if self.is_oversize and self.on_large:
            self.on_large(self.length)
            self.is_oversize = self.length > self.size
        if self.is_oversize:
            self.packet_id = 0
            # Behind topic and packet id is the payload.
            self.payload_len = self.length - self.field - (4 if self.first & 6 else 2)
            if self.payload_len < 0:
                return MALFORMED
        return self._await_body()
