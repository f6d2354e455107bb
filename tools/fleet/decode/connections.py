"""Which connection a segment belongs to.

A connection is one life of a pair of addresses and ports; a SYN with a new first
sequence number starts the next one, as Wireshark counts them.  Names are built
from what every part of a capture shows, so that splitting files changes none.
"""

import datetime
import ipaddress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..capture.link import ACK, FIN, RST, SYN
from ..columns import Growing, factorized, ranked

# TCP's sequence numbers begin again behind 2^32 (RFC 9293 §3.4).
WHOLE = 1 << 32
_HALF = 1 << 31
# Segments of a stream lie within this distance of what was seen of it: no sender sends further
# ahead without an answer.
NEAR_BYTES = 1 << 20

# The columns that identify a connection, each with an odd number for the hash.
_MIX = {
    "client_high": 0x9E3779B97F4A7C15,
    "client_low": 0xC2B2AE3D27D4EB4F,
    "server_high": 0x165667B19E3779F9,
    "server_low": 0xD6E8FEB86659FD93,
    "ports": 0xA0761D6478BD642F,
}


def key_hash(segments):
    """A 64-bit hash of addresses and ports, the same for both directions."""
    result = np.zeros(len(segments.ts), np.uint64)
    for name, factor in _MIX.items():
        result = (result ^ getattr(segments, name).astype(np.uint64)) * np.uint64(factor)
        result ^= result >> np.uint64(29)
    return result


def wrapped(difference):
    """Of two sequence numbers this difference, in bytes from -2^31 to 2^31 - 1; arrays, too."""
    return (difference + _HALF) % WHOLE - _HALF


def bases(known, stream, seq, is_data, is_syn):
    """The sequence number from which each stream is counted: what is `known` of it, else its
    SYN's, else that of its first data; -1 for none.

    `stream` is the place in `known` of each segment, whose number is `seq`.
    """
    base = known.copy()
    for places in (np.flatnonzero(is_data), np.flatnonzero(is_syn)):
        first = np.full(len(base), -1, np.int64)
        first[stream[places[::-1]]] = seq[places[::-1]] % WHOLE
        base = np.where((known < 0) & (first >= 0), first, base)
    return base


_OF_STREAM = [("first", "<i8"), ("last", "<i8"), ("ack", "<i8")]
_OF_CONNECTION = [("has_data", "?"), ("is_closed", "?"), ("last_ts", "<i8")]


@dataclass(slots=True)
class Connection:
    """What is known of one connection; `number` is its index in the registry."""

    number: int
    name: str
    capture: str
    client_id: str | None = None
    level: int = 0
    isn: int = -1
    segments: int = 0  # seen so far: the clock that orders packets


class Registry:
    """All connections met so far, found by the hash of their addresses."""

    def __init__(self):
        self.all = []
        self._now = {}
        self._of_key = {}  # {key: its connections}, for what comes a second time
        self._names = {}
        # Of each stream (2 × number + direction): first and last number, and acknowledgement.
        self._streams = Growing((-1, -1, -1), _OF_STREAM)
        # Of each connection: was data seen, its end, and when was it last heard of?
        self._connections = Growing((False, False, 0), _OF_CONNECTION)

    def assign(self, segments, capture):
        """-> (connection number, ordinal in the connection) for each segment."""
        self._connections.reserve(len(self.all) + len(segments.ts))  # each may begin a new one
        codes, keys = factorized(key_hash(segments))
        groups = _Groups(codes, len(keys))
        number = np.empty(len(keys), np.int64)
        base = np.empty(len(keys), np.int64)
        first = groups.order[groups.starts[:-1]]
        counts = np.diff(groups.starts).tolist()
        for code, (key, at) in enumerate(zip(keys.tolist(), first.tolist(), strict=True)):
            now = self._now.get(key)
            if now is not None and now.capture != capture and self._is_apart(now, segments, at):
                now = self._again(key, segments, at)
            if now is None:
                now = self._new(key, _name(segments, at), capture)
            now.capture = capture
            number[code] = now.number
            base[code] = now.segments
            now.segments += counts[code]
        numbers, ordinals = number[codes], base[codes] + groups.rank
        self._split(segments, capture, keys, codes, groups, numbers, ordinals)
        self._note(segments, numbers)
        return numbers, ordinals

    def _is_apart(self, now, segments, at):
        # Another capture goes on with a connection only where the first one ended.
        known = self._connections.array[now.number]
        if segments.ts[at] < known["last_ts"] or (known["has_data"] and _is_connect(segments, at)):
            return True
        # Of one direction, all of which the other one had acknowledged in the first capture.
        stream = 2 * now.number + int(not segments.to_server[at])
        acked = int(self._streams.array["ack"][stream ^ 1])
        ahead = (acked - int(segments.seq[at])) % WHOLE
        return self._streams.array["first"][stream] < 0 <= acked and 0 < ahead < NEAR_BYTES

    def _again(self, key, segments, at):
        # The connection of which this segment is a second copy: files that overlap.
        direction = int(not segments.to_server[at])
        seq, ts = int(segments.seq[at]), int(segments.ts[at])
        for known in reversed(self._of_key[key]):
            first, last, _ = self._streams.array[2 * known.number + direction].tolist()
            length = (last - first) % WHOLE
            place = (seq - first + NEAR_BYTES) % WHOLE
            is_then = ts <= self._connections.array["last_ts"][known.number]
            if is_then and first >= 0 and place <= length + 2 * NEAR_BYTES:
                self._now[key] = known
                return known
        return None

    def _new(self, key, name, capture):
        again = self._names[name] = self._names.get(name, 0) + 1
        new = Connection(len(self.all), name if again == 1 else f"{name}~{again}", capture)
        self.all.append(new)
        self._now[key] = new
        self._of_key.setdefault(key, []).append(new)
        return new

    def _split(self, segments, capture, keys, codes, groups, numbers, ordinals):
        # SYNs of clients, in order.  Most begin a connection.
        is_syn = segments.to_server & (segments.flags & (SYN | ACK) == SYN)
        is_end = segments.flags & (FIN | RST) != 0
        for at in np.flatnonzero(is_syn).tolist():
            now = self.all[numbers[at]]
            isn = int(segments.seq[at])
            rank = int(groups.rank[at])
            known = self._connections.array[now.number]
            if rank == 0 and now.isn < 0 and not known["has_data"]:
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
            elif now.isn != isn or known["is_closed"] or is_end[earlier].any():
                new = self._new(int(keys[codes[at]]), _name(segments, at), capture)
                new.isn = isn
                new.segments = now.segments
                numbers[mine[rank:]] = new.number

    def _same_syn(self, key, isn, ts):
        # The connection that this SYN of an overlapping file opened before.
        for known in self._of_key[key]:
            if known.isn == isn and ts <= self._connections.array["last_ts"][known.number]:
                self._now[key] = known
                return known
        return None

    def _is_late(self, now, segments, earlier, isn):
        # A SYN is late if the connection has only what follows it; others begin a new one.
        if self._connections.array["has_data"][now.number]:
            return False
        data = earlier[segments.to_server[earlier] & (segments.size[earlier] > 0)]
        return bool(((segments.seq[data] - isn - 1) % WHOLE < NEAR_BYTES).all())

    def _note(self, segments, numbers):
        # What later batches need to know of the connections in this one.
        known = self._connections.array
        known["has_data"][numbers[segments.size > 0]] = True
        known["is_closed"][numbers[segments.flags & (FIN | RST) != 0]] = True
        # The last of several segments counts, even if it is earlier, as a clock may have been set.
        known["last_ts"][numbers] = np.maximum(known["last_ts"][numbers], segments.ts)
        stream = 2 * numbers + ~segments.to_server
        self._streams.reserve(2 * len(self.all))
        known = self._streams.array
        fresh = np.flatnonzero(known["first"][stream] < 0)[::-1]
        known["first"][stream[fresh]] = segments.seq[fresh]
        known["last"][stream] = segments.seq
        has_ack = segments.flags & ACK != 0
        known["ack"][stream[has_ack]] = segments.ack[has_ack]


class _Groups:
    # The segments of each key: `members(code)`, and each segment's `rank` among them.
    def __init__(self, codes, count):
        self.order = np.argsort(codes, kind="stable")
        self.starts = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=count))))
        self.rank = ranked(self.order) - self.starts[codes]

    def members(self, code):
        return self.order[self.starts[code] : self.starts[code + 1]]


def _is_connect(segments, at):
    if not segments.to_server[at] or segments.held[at] < 12:
        return False
    start = segments.start[at]
    head = segments.data[start : start + 16].tobytes()
    return head[0] == 0x10 and (b"MQIsdp" in head or b"MQTT" in head)


def _name(segments, at):
    # -> the name of the connection that begins with this segment.
    names = ("client_high", "client_low", "server_high", "server_low", "ports", "ts")
    *ends, ports, ts = (int(getattr(segments, one)[at]) for one in names)
    client, server = _address(*ends[:2]), _address(*ends[2:])
    second = _second(ts // 1_000_000)
    time = second + ".%06d" % (ts % 1_000_000) if second else str(ts)
    return "%s:%d-%s:%d@%s" % (client, ports >> 16, server, ports & 0xFFFF, time)


@lru_cache(65_536)
def _address(high, low):
    if high == 0 and low >> 32 == 0xFFFF:
        return "%d.%d.%d.%d" % tuple((low & 0xFFFFFFFF).to_bytes(4, "big"))
    return "[%s]" % ipaddress.IPv6Address(high << 64 | low)


@lru_cache(4096)
def _second(seconds):
    try:
        moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
        return moment.strftime("%Y%m%dT%H%M%S")
    except (ValueError, OverflowError, OSError):
        return None
