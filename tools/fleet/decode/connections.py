"""Which connection a segment belongs to.

A connection is one life of a pair of addresses and ports; a SYN with a new first
sequence number starts the next one, as Wireshark counts them.  Names are built
from what every part of a capture shows, so that splitting files changes none.
"""

import datetime
import ipaddress
from functools import lru_cache

import numpy as np
import pandas as pd

from ..capture.link import ACK, FIN, RST, SYN
from .growing import Growing

C2S, S2C = 0, 1
_WHOLE = 1 << 32
# How far outside what was seen of a stream its own segments can lie.
_NEAR_BYTES = 1 << 20

_MIX = [
    np.uint64(number | 1)
    for number in (
        0x9E3779B97F4A7C15,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0xD6E8FEB86659FD93,
        0xA0761D6478BD642F,
    )
]


def key_hash(segments):
    """A 64-bit hash of addresses and ports, the same for both directions."""
    result = np.zeros(len(segments.ts), np.uint64)
    parts = (
        segments.client_high,
        segments.client_low,
        segments.server_high,
        segments.server_low,
        segments.ports.astype(np.uint64),
    )
    for part, factor in zip(parts, _MIX, strict=True):
        result = (result ^ part) * factor
        result ^= result >> np.uint64(29)
    return result


class Connection:
    """What is known of one connection; `number` is its index in the registry."""

    __slots__ = (
        "number",
        "name",
        "client_id",
        "level",
        "isn",
        "is_closed",
        "has_data",
        "last_ts",
        "capture",
        "segments",
    )

    def __init__(self, number, name, capture):
        self.number = number
        self.name = name
        self.client_id = None
        self.level = 0
        self.isn = -1
        self.is_closed = False
        self.has_data = False
        self.last_ts = 0
        self.capture = capture
        self.segments = 0  # seen so far: the clock that orders packets


class Registry:
    """All connections met so far, found by the hash of their addresses."""

    def __init__(self):
        self.all = []
        self._now = {}
        self._of_key = {}  # {key: its connections}, for what comes a second time
        self._names = {}
        # Of each stream (2 × number + direction), the first and last sequence number.
        self._first_seq, self._last_seq = Growing(-1, np.int64), Growing(-1, np.int64)

    def assign(self, segments, capture):
        """-> (connection number, ordinal in the connection) for each segment."""
        codes, keys = pd.factorize(key_hash(segments))
        groups = _Groups(codes, len(keys))
        number = np.empty(len(keys), np.int64)
        base = np.empty(len(keys), np.int64)
        first = groups.order[groups.starts[:-1]]
        for code, (key, at) in enumerate(zip(keys.tolist(), first.tolist(), strict=True)):
            now = self._now.get(key)
            if now is not None and self._is_apart(now, segments, at, capture):
                now = self._again(key, segments, at, capture)
            if now is None:
                now = self._new(key, segments, at, capture)
            number[code] = now.number
            base[code] = now.segments
            now.segments += int(groups.starts[code + 1] - groups.starts[code])
        numbers, ordinals = number[codes], base[codes] + groups.rank
        self._split(segments, capture, keys, codes, groups, numbers, ordinals)
        self._note(segments, numbers)
        return numbers, ordinals

    def _is_apart(self, now, segments, at, capture):
        # Another capture goes on with a connection only where the first one ended.
        if now.capture == capture:
            return False
        is_apart = bool(segments.ts[at] < now.last_ts)
        is_apart |= now.has_data and _is_connect(segments, at)
        now.capture = capture
        return is_apart

    def _again(self, key, segments, at, capture):
        # The connection of which this segment is a second copy: files that overlap.
        direction = int(not segments.to_server[at])
        seq, ts = int(segments.seq[at]), int(segments.ts[at])
        for known in reversed(self._of_key[key]):
            stream = 2 * known.number + direction
            first = int(self._first_seq.array[stream])
            length = (int(self._last_seq.array[stream]) - first) % _WHOLE
            place = (seq - first + _NEAR_BYTES) % _WHOLE
            if ts <= known.last_ts and first >= 0 and place <= length + 2 * _NEAR_BYTES:
                known.capture = capture
                self._now[key] = known
                return known
        return None

    def _new(self, key, segments, at, capture):
        name = _name(segments, at)
        again = self._names[name] = self._names.get(name, 0) + 1
        new = Connection(len(self.all), name if again == 1 else f"{name}~{again}", capture)
        self.all.append(new)
        self._now[key] = new
        self._of_key.setdefault(key, []).append(new)
        return new

    def _split(self, segments, capture, keys, codes, groups, numbers, ordinals):
        # SYNs of clients, in order: most belong to connections that just began.
        is_syn = segments.to_server & (segments.flags & (SYN | ACK) == SYN)
        for at in np.flatnonzero(is_syn).tolist():
            now = self.all[numbers[at]]
            isn = int(segments.seq[at])
            rank = int(groups.rank[at])
            if rank == 0 and now.isn < 0 and not now.has_data:
                now.isn = isn
                continue
            mine = groups.members(codes[at])
            same = self._same_syn(int(keys[codes[at]]), isn, int(segments.ts[at]))
            if same is not None:
                if same is not now:
                    numbers[mine[rank:]] = same.number
                    ordinals[mine[rank:]] += same.segments
                    same.segments += len(mine)
                continue
            earlier = mine[:rank][numbers[mine[:rank]] == now.number]
            if now.isn < 0 and self._is_late(now, segments, earlier, isn):
                now.isn = isn
            elif now.isn != isn or now.is_closed or _has_end(segments, earlier):
                new = self._new(int(keys[codes[at]]), segments, at, capture)
                new.isn = isn
                new.segments = now.segments
                numbers[mine[rank:]] = new.number

    def _same_syn(self, key, isn, ts):
        # The connection that this SYN of an overlapping file opened before.
        for known in self._of_key[key]:
            if known.isn == isn and ts <= known.last_ts:
                self._now[key] = known
                return known
        return None

    @staticmethod
    def _is_late(now, segments, earlier, isn):
        # A SYN behind nothing but the first data is late; others begin something new.
        if now.has_data:
            return False
        data = earlier[segments.to_server[earlier] & (segments.size[earlier] > 0)]
        return not len(data) or bool((segments.seq[data] == (isn + 1) % _WHOLE).any())

    def _note(self, segments, numbers):
        # What later batches need to know of the connections in this one.
        has_data = np.unique(numbers[segments.size > 0])
        closed = np.unique(numbers[segments.flags & (FIN | RST) != 0])
        for number in has_data.tolist():
            self.all[number].has_data = True
        for number in closed.tolist():
            self.all[number].is_closed = True
        for number, ts in zip(*_last(numbers, segments.ts), strict=True):
            one = self.all[number]
            one.last_ts = max(one.last_ts, ts)
        stream = 2 * numbers + ~segments.to_server
        first = np.full(2 * len(self.all), -1)
        first[stream[::-1]] = segments.seq[::-1]
        for seqs in (self._first_seq, self._last_seq):
            seqs.reserve(len(first))
        known = self._first_seq.array[: len(first)]
        self._first_seq.array[: len(first)] = np.where(known < 0, first, known)
        self._last_seq.array[stream] = segments.seq


class _Groups:
    # The segments of each key: `members(code)`, and each segment's `rank` among them.
    def __init__(self, codes, count):
        narrow = codes.astype(np.uint16) if count <= 1 << 16 else codes
        self.order = np.argsort(narrow, kind="stable")
        self.starts = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=count))))
        self.rank = np.empty(len(codes), np.int64)
        self.rank[self.order] = np.arange(len(codes)) - self.starts[codes[self.order]]

    def members(self, code):
        return self.order[self.starts[code] : self.starts[code + 1]]


def _has_end(segments, index):
    return bool((segments.flags[index] & (FIN | RST) != 0).any())


def _last(numbers, ts):
    last, place = np.unique(numbers[::-1], return_index=True)
    return last.tolist(), ts[::-1][place].tolist()


def _is_connect(segments, at):
    if not segments.to_server[at] or segments.held[at] < 12:
        return False
    start = segments.start[at]
    head = segments.data[start : start + 16].tobytes()
    return head[0] == 0x10 and (b"MQIsdp" in head or b"MQTT" in head)


def _name(segments, at):
    client = _end(segments.client_high[at], segments.client_low[at], segments.ports[at] >> 16)
    server = _end(segments.server_high[at], segments.server_low[at], segments.ports[at] & 0xFFFF)
    return f"{client}-{server}@{_time(int(segments.ts[at]))}"


def _end(high, low, port):
    return "%s:%d" % (_address(int(high), int(low)), port)


@lru_cache(65_536)
def _address(high, low):
    if high == 0 and low >> 32 == 0xFFFF:
        return "%d.%d.%d.%d" % tuple((low & 0xFFFFFFFF).to_bytes(4, "big"))
    return "[%s]" % ipaddress.IPv6Address(high << 64 | low)


def _time(ts):
    second = _second(ts // 1_000_000)
    return second + ".%06d" % (ts % 1_000_000) if second else str(ts)


@lru_cache(4096)
def _second(seconds):
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
        return moment.strftime("%Y%m%dT%H%M%S")
    except (ValueError, OverflowError, OSError):
        return None
