"""MQTT in WebSocket frames (RFC 6455) -> the bytes inside.

An `Unwrapper` follows one direction of one connection: the HTTP head, then frames,
whatever way these are cut into segments.  Control frames are passed over.  What the
standard calls an extension (compressed frames) is not read, and said.
"""

from .plausible import SHORT, check
from .reorder import Part

C2S = 0
_OPENINGS = (b"GET ", b"HTTP/1.1 101")
_HEAD_BYTES = 1 << 16  # a longer head is not of a WebSocket
_DATA, _CONTROL = (0, 1, 2), (8, 9, 10)
_HTTP, _FRAMES, _LOST = range(3)


def opens(data, direction):
    """Does a stream that begins with `data` open a WebSocket?  None: too short to tell."""
    wanted = _OPENINGS[direction]
    if data.startswith(wanted):
        return True
    return None if wanted.startswith(data) else False


def is_frame(data, direction):
    """Do these bytes begin with a frame that holds an MQTT packet, and go on with frames?"""
    pos, count = 0, 0
    while pos < len(data):
        head = _head(data, pos)
        if head is None:
            return count > 0
        opcode, body, size, mask = head
        if opcode not in _DATA + _CONTROL or (mask is None) == (direction == C2S):
            return False
        if not count:
            # Take what is here of a frame that goes on in the next segment.
            shown = _unmasked(data[body : body + size], mask, 0)
            if opcode != 2 or not shown or check(shown, 0, len(shown), direction) in (0, SHORT):
                return False
        pos, count = body + size, count + 1
    return True


def _head(data, pos):
    # -> (opcode, place of the payload, its size, mask), or None when cut short.
    if pos + 2 > len(data):
        return None
    size = data[pos + 1] & 127
    body = pos + 2
    more = {126: 2, 127: 8}.get(size, 0)
    if more:
        size = int.from_bytes(data[body : body + more], "big")
        body += more
    is_masked = data[pos + 1] & 128
    mask = data[body : body + 4] if is_masked else None
    body += 4 if is_masked else 0
    if body > len(data):
        return None
    opcode = data[pos] & 15 if not data[pos] & 0x70 else -1
    return opcode, body, size, mask


def _unmasked(data, mask, place):
    # `place`: how much of the frame's payload came before.
    if not mask or not data:
        return bytes(data)
    turn = place & 3
    mask = mask[turn:] + mask[:turn]
    key = mask * (len(data) // 4 + 1)
    size = len(data)
    mixed = int.from_bytes(data, "big") ^ int.from_bytes(key[:size], "big")
    return mixed.to_bytes(size, "big")


class Unwrapper:
    """The state of one direction; `is_opened`: begins with the HTTP head.

    `problem` says why nothing more can be read, None while it can.
    """

    def __init__(self, direction, is_opened):
        self._direction = direction
        self.is_opened = is_opened
        self._state = _HTTP if is_opened else _LOST
        self._is_found = is_opened
        self._held = b""  # an HTTP head or a frame's head that is not all there
        self._left, self._place, self._mask, self._is_data = 0, 0, None, False
        self._missing = 0
        self.problem = None

    def feed(self, part):
        """A `Part` of the stream -> Parts of the bytes inside."""
        out = []
        if part.missing:
            self._missing += part.missing
            self._state, self._held, self._left = _LOST, b"", 0
        if self._state == _LOST:
            if not is_frame(part.data, self._direction):
                self._missing += len(part.data) if self._is_found else 0
                return out
            self._state, self._is_found = _FRAMES, True
        data = self._held + part.data
        pos = -len(self._held)  # of `data`'s first byte in the part
        self._held = b""
        if self._state == _HTTP:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                self._held = data
                self.problem = "no WebSocket" if len(data) > _HEAD_BYTES else None
                return out
            if b"websocket" not in data[:end].lower():
                self.problem = "no WebSocket"
                return out
            self._state = _FRAMES
            data, pos = data[end + 4 :], pos + end + 4
        self._frames(data, pos, part, out)
        return out

    def _frames(self, data, shift, part, out):
        pos = 0
        while pos < len(data) and not self.problem:
            if not self._left:
                head = _head(data, pos)
                if head is None:
                    self._held = bytes(data[pos:])
                    return
                opcode, pos, self._left, self._mask = head
                self._place, self._is_data = 0, opcode in _DATA
                if not self._is_data and opcode not in _CONTROL:
                    self.problem = "compressed or damaged WebSocket frames"
                continue
            some = data[pos : pos + self._left]
            if self._is_data:
                inner = _unmasked(some, self._mask, self._place)
                offset = part.offset + shift + pos
                out.append(Part(inner, part.ordinal, part.ts, offset, self._missing))
                self._missing = 0
            self._left -= len(some)
            self._place += len(some)
            pos += len(some)
