"""Stream bytes -> where MQTT packets begin and end.

Theory of operation.  Nearly always a TCP segment holds whole packets.  So `walk`
hops from header to header in all segments of a batch at once, each from its own
start.  Where every segment of a stream comes out exactly at its end, that was the
truth and the packets stay where they are in the capture's buffer.  Every other
stream (packets over several segments, missing bytes, a start in the middle) is
joined and framed one packet after the other by `Framer`, which also finds the
next plausible packet after a gap.  Nothing is guessed across missing bytes, and every
byte that no packet was found in is an event: GAP, UNREAD, NOT_MQTT, ENCRYPTED.  Streams
that carry WebSocket frames are unwrapped and framed by a `Framer` of their own.
"""

import bisect
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from ..capture.frames import padded, varints
from ..columns import Growing, begins
from . import plausible, websocket
from .plausible import INCOMPLETE, SHORT
from .reorder import Part

_NEW, _SYNCED, _LOST, _FOREIGN, _WRAPPED = 0, 1, 2, 3, 4
# After so many segments without a plausible packet a stream that never made sense is called
# foreign, and a lost one is read segment by segment.
_PATIENCE = 64

GAP, MALFORMED, NOT_MQTT, INCOMPLETE_PACKET = "GAP", "MALFORMED", "NOT_MQTT", "INCOMPLETE"
UNREAD, ENCRYPTED = "UNREAD", "ENCRYPTED"


@dataclass
class Packets:
    """Packets in `data`: first byte `at`, variable header `body`, behind it `end`."""

    data: np.ndarray
    at: np.ndarray
    body: np.ndarray
    end: np.ndarray
    stream: np.ndarray
    ordinal: np.ndarray
    ts: np.ndarray
    offset: np.ndarray


def walk(data, start, end):
    """Hop over packets from each `start` to its `end`, all at once.

    -> (piece, at, body, end) of the packets that are all there, in the order of the
    pieces, and for each piece whether its packets fill it exactly.
    """
    is_whole = np.zeros(len(start), bool)
    found = []
    active = np.arange(len(start))
    pos = start
    # A few segments with very many packets are not worth one round for each packet.
    while len(active) > (16 if len(found) > 64 else 0):
        limit = end[active]
        first = data[pos]
        length = data[pos + 1].astype(np.int64)
        body = pos + 2
        long = np.flatnonzero(length > 127)
        if len(long):
            length[long], body[long] = varints(data, pos[long] + 1)
        after = body + length
        is_good = (first >= 16) & (after <= limit)
        if not is_good.all():
            active, pos, body, after = active[is_good], pos[is_good], body[is_good], after[is_good]
            limit = limit[is_good]
        found.append((active, pos, body, after))
        is_whole[active[after == limit]] = True
        goes_on = after < limit
        active, pos = active[goes_on], after[goes_on]
    piece, at, body, after = (np.concatenate(part) for part in zip(*found, strict=True))
    if len(found) > 1:
        order = np.argsort(piece, kind="stable")
        piece, at, body, after = piece[order], at[order], body[order], after[order]
    return piece, at, body, after, is_whole


class Framer:
    """State of all streams: in step or not, and the start of an unfinished packet."""

    def __init__(self):
        self._sync = Growing(_NEW, np.int8)
        self._tail = {}
        self._misses = {}
        self._unread = {}  # [bytes, ordinal, ts, offset] passed over since
        self._wrapped = {}
        self._inner = None

    def feed(self, pieces, parts, is_opened):
        """-> (`Packets` in the pieces' buffer, `Packets` joined, events).

        `is_opened` tells for each stream whether its start was captured.  Events are
        (stream, kind, bytes, ordinal, ts, offset).
        """
        self._sync.reserve(len(is_opened))
        direct, rest = self._direct(pieces, is_opened)
        slow: dict[int, list] = {}
        names = ("stream", "start", "size", "ordinal", "ts", "offset")
        columns = (getattr(rest, name).tolist() for name in names)
        view = rest.data.data
        for stream, start, size, ordinal, ts, offset in zip(*columns, strict=True):
            part = Part(bytes(view[start : start + size]), ordinal, ts, offset, 0)
            slow.setdefault(stream, []).append(part)
        for stream, more in parts.items():
            if more:
                slow.setdefault(stream, []).extend(more)
        joined = _Joined()
        for stream, run in slow.items():
            self._frame(stream, run, bool(is_opened[stream]), joined)
        return direct, joined.packets(), joined.events

    def finish(self):
        """Events for packets of which the end never came."""
        tails, unread = self._tail.items(), self._unread.items()
        events = [(stream, INCOMPLETE_PACKET, len(one), *at) for stream, (one, *at) in tails]
        events += [(stream, UNREAD, *one) for stream, one in unread]
        return events + (self._inner.finish() if self._inner else [])

    def _direct(self, pieces, is_opened):
        # What needs no joining -> (its Packets, the other pieces).
        if not len(pieces.stream):
            return None, pieces
        is_first = begins(pieces.stream)
        first, group = np.flatnonzero(is_first), np.cumsum(is_first) - 1
        streams = pieces.stream[first]
        known, start, direction = self._sync.array[streams], pieces.start[first], streams & 1
        opener = np.where(direction == 0, 0x10, 0x20)
        is_opener = is_opened[streams] & (pieces.data[start] == opener)
        # CONNECT says so by name: "MQTT" or "MQIsdp" (31-2.2-PROTO).
        body = start + 2 + (pieces.data[start + 1] > 127)
        is_named = (pieces.data[body + 2] == ord("M")) & (pieces.data[body + 3] == ord("Q"))
        is_fit = (known == _SYNCED) | ((known == _NEW) & is_opener & (is_named | (direction == 1)))
        is_fit &= ~np.isin(streams, list(self._tail))
        until = pieces.start + pieces.size
        piece, at, body, end, is_whole = walk(pieces.data, pieces.start, until)
        is_fit[group[~is_whole]] = False
        self._sync.array[streams[is_fit]] = _SYNCED
        keep = is_fit[group]
        if not keep.all():
            good = keep[piece]
            piece, at, body, end = piece[good], at[good], body[good], end[good]
        offset = pieces.offset[piece] + at - pieces.start[piece]
        stream, ordinal, ts = (one[piece] for one in (pieces.stream, pieces.ordinal, pieces.ts))
        packets = Packets(pieces.data, at, body, end, stream, ordinal, ts, offset)
        return packets, pieces.take(~keep)

    def _frame(self, stream, parts, is_opened, joined):
        if stream in self._tail and not parts[0].missing:
            data, ordinal, ts, offset = self._tail.pop(stream)
            parts = [Part(data, ordinal, ts, offset, 0), *parts]
        begin = 0
        for place in range(1, len(parts) + 1):
            if place == len(parts) or parts[place].missing:
                self._frame_run(stream, parts[begin:place], is_opened, joined)
                begin = place

    def _frame_run(self, stream, run, is_opened, joined):
        if self._sync.array[stream] == _WRAPPED:
            self._unwrap(stream, run, joined)
            return
        if run[0].missing:
            tail = self._tail.pop(stream, None)
            if tail:
                joined.event(stream, INCOMPLETE_PACKET, len(tail[0]), *tail[1:])
            if self._sync.array[stream] != _FOREIGN:
                joined.event(stream, GAP, run[0].missing, *run[0][1:4])
                self._sync.array[stream] = _LOST
                self._misses[stream] = 0
        data = b"".join([part.data for part in run]) if len(run) > 1 else run[0].data
        marks = _Marks(run)
        base = joined.append(data)
        pos = self._find_start(stream, data, marks, is_opened, joined)
        if self._sync.array[stream] == _WRAPPED:
            self._unwrap(stream, run, joined)
            return
        while 0 <= pos < len(data):
            body, after = plausible.header(data, pos, len(data))
            if after == 0 or data[pos] < 16:
                joined.event(stream, MALFORMED, 0, *marks.at(pos))
                self._sync.array[stream] = _LOST
                self._misses[stream] = 0
                behind = marks.behind(pos)
                self._pass_over(stream, behind - pos, marks.at(pos))
                pos = self._search(stream, data, marks, behind, joined)
                continue
            if after == INCOMPLETE or after > len(data):
                ordinal, ts, offset = marks.at(pos)
                self._tail[stream] = (data[pos:], ordinal, ts, offset)
                return
            ordinal, ts, _ = marks.at(after - 1)
            row = (base + pos, base + body, base + after, stream, ordinal, ts)
            joined.rows.append((*row, marks.offset(pos)))
            pos = after

    def _find_start(self, stream, data, marks, is_opened, joined):
        sync = self._sync.array[stream]
        if sync == _SYNCED:
            return 0
        if sync == _FOREIGN:
            return -1
        if sync == _NEW and is_opened:
            begin = _proxied(data) if stream & 1 == 0 else 0
            if begin is None:
                self._tail[stream] = (data, *marks.at(0))
                return -1
            opens = False if begin else websocket.opens(data, stream & 1)
            if opens:
                self._wrap(stream, True)
                return -1
            if is_encrypted(data[begin:]):
                self._give_up(stream, ENCRYPTED, len(data), marks.at(0), joined)
                return -1
            # The first bytes of a connection are a packet, or this is not MQTT.
            after = plausible.check(data, begin, len(data), stream & 1)
            if after == SHORT or opens is None:
                self._tail[stream] = (data, *marks.at(0))
                return -1
            if after == 0:
                self._give_up(stream, NOT_MQTT, len(data), marks.at(0), joined)
                return -1
            self._sync.array[stream] = _SYNCED
            return begin
        return self._search(stream, data, marks, 0, joined)

    def _search(self, stream, data, marks, place, joined):
        # Segment by segment, from the one at `place` on.
        for begin, end in marks.spans(place, len(data)):
            misses = self._misses.get(stream, 0)
            is_new = self._sync.array[stream] == _NEW
            if is_new and is_encrypted(data[begin : begin + 5]):
                self._give_up(stream, ENCRYPTED, end - begin, marks.at(begin), joined)
                return -1
            if is_new and websocket.is_frame(data[begin:end], stream & 1):
                self._wrap(stream, False)
                self._say_unread(stream, joined)
                return -1
            pos = plausible.find(data, begin, end, stream & 1, misses < _PATIENCE)
            if pos >= 0:
                self._sync.array[stream] = _SYNCED
                self._misses.pop(stream, None)
                self._pass_over(stream, pos - begin, marks.at(begin))
                self._say_unread(stream, joined)
                return pos
            self._misses[stream] = misses + 1
            if is_new and misses >= _PATIENCE:
                self._give_up(stream, NOT_MQTT, len(data) - begin, marks.at(begin), joined)
                return -1
            self._pass_over(stream, end - begin, marks.at(begin))
        return -1

    def _pass_over(self, stream, size, place):
        if size:
            self._unread.setdefault(stream, [0, *place])[0] += size

    def _say_unread(self, stream, joined):
        if stream in self._unread:
            joined.event(stream, UNREAD, *self._unread.pop(stream))

    def _give_up(self, stream, kind, size, place, joined):
        # All bytes that were skipped until now belong to it.
        self._sync.array[stream] = _FOREIGN
        self._misses.pop(stream, None)
        before = self._unread.pop(stream, [0, *place])
        joined.event(stream, kind, size + before[0], *before[1:])

    def _wrap(self, stream, is_opened):
        self._sync.array[stream] = _WRAPPED
        self._misses.pop(stream, None)
        self._wrapped[stream] = websocket.Unwrapper(stream & 1, is_opened)

    def _unwrap(self, stream, parts, joined):
        unwrapper = self._wrapped[stream]
        inner, read = [], 0
        while read < len(parts) and not unwrapper.problem:
            inner += unwrapper.feed(parts[read])
            read += 1
        if inner:
            framer = self._inner = self._inner or Framer()
            framer._frame(stream, inner, unwrapper.is_opened, joined)
        if unwrapper.problem:
            rest = parts[read - 1 :]
            size = sum(len(part.data) for part in rest)
            self._give_up(stream, NOT_MQTT, size, rest[0][1:4], joined)


def is_encrypted(start):
    """Do these first bytes of a segment begin a record of TLS?  No MQTT packet does."""
    return len(start) > 4 and 0x14 <= start[0] <= 0x17 and start[1] == 3 and start[2] <= 4


class _Marks:
    # -> in which part of a run a position lies.
    def __init__(self, run):
        self._run = run
        self._ends = list(accumulate(len(part.data) for part in run))

    def _seek(self, pos):
        return bisect.bisect_right(self._ends, pos)

    def at(self, pos):
        part = self._run[self._seek(pos)]
        return part.ordinal, part.ts, self.offset(pos)

    def offset(self, pos):
        index = self._seek(pos)
        part = self._run[index]
        return part.offset + pos - (self._ends[index] - len(part.data))

    def behind(self, pos):
        return self._ends[self._seek(pos)]

    def spans(self, pos, size):
        if pos < size:
            for index in range(self._seek(pos), len(self._ends)):
                yield self._ends[index] - len(self._run[index].data), self._ends[index]


class _Joined:
    # The joined bytes of all slow streams, and what was found in them.
    def __init__(self):
        self._data, self.rows, self.events = bytearray(), [], []

    def append(self, data):
        self._data += data
        return len(self._data) - len(data)

    def event(self, *event):
        self.events.append(event)

    def packets(self):
        return Packets(padded(self._data), *np.array(self.rows).T) if self.rows else None


_PROXY_1, _PROXY_2 = b"PROXY ", b"\r\n\r\n\0\r\nQUIT\n"
_PROXY_1_BYTES = 107  # at most


def _proxied(data):
    """How many bytes of a load balancer's PROXY protocol, 1 or 2, a client's stream begins with;
    None: too short to tell."""
    if data.startswith(_PROXY_1):
        end = data.find(b"\r\n", 0, _PROXY_1_BYTES)
        return end + 2 if end > 0 else None if len(data) < _PROXY_1_BYTES else 0
    if data.startswith(_PROXY_2):
        size = 16 + int.from_bytes(data[14:16], "big")
        return size if 16 < len(data) >= size else None
    return None if data and (_PROXY_1.startswith(data) or _PROXY_2.startswith(data)) else 0
