"""Frames -> TCP segments of the MQTT ports, all frames of a run at once.

Link types: Ethernet with VLAN and QinQ tags and with LLC and SNAP, Linux cooked (SLL, SLL2), BSD
loopback (NULL, LOOP), raw IP.  IPv4 and IPv6 with extension headers.  IP
fragments are counted, not put together; bare acknowledgements are left out; what
is passed over is counted: other link types, and tunnels, by their names.
"""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from ..columns import SET_US
from .frames import words

# By link type (Ethernet, SLL, SLL2): bytes before IP, and where the EtherType stands.
_ETHER_TYPE_AT = {1: (14, 12), 113: (16, 14), 276: (20, 0)}
# By link type (NULL, LOOP, raw IP): bytes before IP, of which its own version tells.
_IP_AT = {0: 4, 108: 4, **dict.fromkeys((12, 14, 101, 228, 229), 0)}
_TAGS = (0x8100, 0x88A8, 0x9100, 0x9200)
_SNAP = 0xAAAA0300, 0x0000  # what stands before an EtherType, from DSAP on
_MOST_LENGTH = 1500  # in the place of an EtherType: LLC follows
_IPV4, _IPV6 = 0x0800, 0x86DD
_TCP, _UDP = 6, 17
# Where MQTT may be that is not looked for: by EtherType, IP protocol, UDP port.
_TUNNEL_KINDS = {0x8847: "mpls", 0x8848: "mpls", 0x8864: "pppoe"}
_TUNNEL_PROTOCOLS = {4: "ip_in_ip", 41: "ip_in_ip", 47: "gre", 50: "esp"}
_TUNNEL_PORTS = {4789: "vxlan", 8472: "vxlan", 6081: "geneve"}
_FRAGMENT, _AUTHENTICATION = 44, 51
# Hop by hop, routing, destination, mobility, host identity, shim6.
_EXTENSIONS = (0, 43, _FRAGMENT, _AUTHENTICATION, 60, 135, 139, 140)

FIN, SYN, RST, ACK = 1, 2, 4, 16
_MOST_SET = 3  # a clock is set at most so often in some megabytes
# The first byte of CONNECT, and the first four letters of the protocol's names.
_CONNECT, _MQTT, _MQIS = 0x10, 0x4D515454, 0x4D514973


@dataclass
class Segments:
    """TCP segments, one entry each, in capture order.

    Addresses are two unsigned 64-bit halves, IPv4 mapped into IPv6.  `client_*` and
    `server_*` are the ends of the connection, whoever sent the segment; `to_server`
    says who did.  `start` is where the payload lies in `data`, `held` how many of
    its `size` bytes were captured; `offset` the payload's place in the file; `ts` in
    microseconds.
    """

    data: np.ndarray
    client_high: np.ndarray
    client_low: np.ndarray
    server_high: np.ndarray
    server_low: np.ndarray
    ports: np.ndarray  # client's << 16 | server's
    to_server: np.ndarray
    seq: np.ndarray
    ack: np.ndarray
    flags: np.ndarray
    start: np.ndarray
    size: np.ndarray
    held: np.ndarray
    offset: np.ndarray
    ts: np.ndarray
    # Places of the file where its times go back: (offset, time before, time behind).
    set_back: tuple = ()

    def take(self, index):
        """Only the entries at `index`, an array of positions."""
        names = [name for name in self.__dataclass_fields__ if name not in ("data", "set_back")]
        columns = {name: getattr(self, name)[index] for name in names}
        return replace(self, **columns)

    def in_time_order(self):
        """The same, frames that were written a little after later ones put before them.

        Where the time steps back for more than a second the clock was set, and what
        follows stays behind.
        """
        step = np.diff(self.ts)
        if not (step < 0).any():
            return self
        block = np.concatenate(([0], np.cumsum(step < -SET_US)))
        return self.take(np.lexsort((self.ts, block)))


def segments(frames, ports, tally):
    """The `Segments` of these `Frames` from or to one of `ports` (a set)."""
    # Each field is read at once for all frames that are still candidates.
    read = SimpleNamespace(u8=frames.data)
    for size in (2, 4, 8):
        setattr(read, "u%d" % (8 * size), words(frames.data, ">u%d" % size))
    end = frames.start + frames.size
    at, kind = np.zeros((2, len(end)), np.int64)
    for link in np.unique(frames.link).tolist():
        mine = np.flatnonzero(np.broadcast_to(frames.link == link, len(end)))
        at[mine], kind[mine] = _network(read, link, frames.start[mine], end[mine], tally)
    index, proto, at, *rest = _internet(read, at, kind, end, tally)
    is_tcp = proto == _TCP
    tally.add("other_frames", len(frames.start) - np.count_nonzero(is_tcp))
    if len(index) < len(frames.start):
        _tunnels(tally, kind, _TUNNEL_KINDS)
    if not is_tcp.all():
        _tunnels(tally, proto, _TUNNEL_PROTOCOLS)
        target_port = at[(proto == _UDP) & (at + 4 <= end[index])] + 2
        _tunnels(tally, read.u16[target_port], _TUNNEL_PORTS)
        index, at, *rest = (one[is_tcp] for one in (index, at, *rest))
    found = _tcp(read, frames, ports, tally, index, at, end[index], *rest)
    # -> where the clock was set; if two cards whose clocks differ write in turn, nowhere.
    before = frames.ts[0] if tally.last_ts is None else tally.last_ts
    times = np.concatenate(([before], frames.ts))
    tally.last_ts = int(frames.ts[-1])
    at = np.flatnonzero(np.diff(times) < -SET_US)
    columns = frames.base + frames.start[at], times[at], times[at + 1]
    set_back = zip(*(one.tolist() for one in columns), strict=True)
    return replace(found, set_back=tuple(set_back) if len(at) <= _MOST_SET else ())


def _tunnels(tally, numbers, names):
    for number, name in names.items():
        tally.add("inside_" + name, np.count_nonzero(numbers == number))


def _network(read, link, start, end, tally):
    # -> (place of the IP header, EtherType or 0 when only the version tells).
    top = len(read.u16) - 1
    if link in _IP_AT:
        return start + _IP_AT[link], np.zeros(len(start), np.int64)
    if link not in _ETHER_TYPE_AT:
        tally.add("link_type_%d" % link, len(start))
        return start, np.full(len(start), -1, np.int64)
    size, place = _ETHER_TYPE_AT[link]
    at, kind = start + size, read.u16[np.minimum(start + place, top)].astype(np.int64)
    for _ in range(8):
        tagged = np.flatnonzero(np.isin(kind, _TAGS) & (at + 4 <= end))
        if not len(tagged):
            break
        kind[tagged] = read.u16[at[tagged] + 2]
        at[tagged] += 4
    found = np.flatnonzero((kind <= _MOST_LENGTH) & (at + 8 <= end))
    place = at[found]
    found = found[(read.u32[place] == _SNAP[0]) & (read.u16[place + 4] == _SNAP[1])]
    kind[found] = read.u16[at[found] + 6]
    at[found] += 8
    return at, kind


def _internet(read, at, kind, end, tally):
    # -> of IP packets: index, protocol, place behind the header, end, and the two halves of the
    # source address and of the target address.
    version = read.u8[np.minimum(at, end)] >> 4
    is_v4 = ((kind == _IPV4) | (kind == 0)) & (version == 4) & (at + 20 <= end)
    is_v6 = ((kind == _IPV6) | (kind == 0)) & (version == 6) & (at + 40 <= end)
    if is_v4.all():
        return _ipv4(read, np.arange(len(at)), at, end, tally)
    four = _ipv4(read, np.flatnonzero(is_v4), at[is_v4], end[is_v4], tally)
    six = _ipv6(read, np.flatnonzero(is_v6), at[is_v6], end[is_v6], tally)
    order = np.argsort(np.concatenate((four[0], six[0])), kind="stable")
    return [np.concatenate(both)[order] for both in zip(four, six, strict=True)]


def _ipv4(read, index, at, end, tally):
    size = read.u16[at + 2].astype(np.int64)
    # Zero: the network card splits the packet later (segmentation offload).
    end_ip = np.where(size == 0, end, at + size)
    is_fragment = (read.u16[at + 6] & 0x3FFF) != 0
    tally.add("fragments", np.count_nonzero(is_fragment))
    proto = read.u8[at + 9].astype(np.int64)
    tally.add("tcp_fragments", np.count_nonzero(is_fragment & (proto == _TCP)))
    proto[is_fragment] = -1
    mapped = np.uint64(0xFFFF << 32)
    zero = np.zeros(len(at), np.uint64)
    source, target = (read.u32[at + place].astype(np.uint64) | mapped for place in (12, 16))
    behind = at + (read.u8[at] & 15).astype(np.int64) * 4
    return index, proto, behind, end_ip, zero, source, zero, target


def _ipv6(read, index, at, end, tally):
    size = read.u16[at + 4].astype(np.int64)
    end_ip = np.where(size == 0, end, at + 40 + size)
    proto = read.u8[at + 6].astype(np.int64)
    after = at + 40
    for _ in range(8):
        todo = np.flatnonzero(np.isin(proto, _EXTENSIONS) & (after + 8 <= end))
        if not len(todo):
            break
        place, kind = after[todo], proto[todo]
        units = read.u8[place + 1].astype(np.int64)
        step = np.where(kind == _AUTHENTICATION, (units + 2) * 4, (units + 1) * 8)
        step[kind == _FRAGMENT] = 8
        is_part = (kind == _FRAGMENT) & ((read.u16[place + 2] & 0xFFF9) != 0)
        proto[todo] = np.where(is_part, -1, read.u8[place])
        tally.add("fragments", np.count_nonzero(is_part))
        tally.add("tcp_fragments", np.count_nonzero(is_part & (read.u8[place] == _TCP)))
        after[todo] = place + step
    halves = (read.u64[at + place].astype(np.uint64) for place in (8, 16, 24, 32))
    return index, proto, after, end_ip, *halves


def _tcp(read, frames, ports, tally, index, at, end, end_ip, *halves):
    is_whole = at + 20 <= np.minimum(end, end_ip)
    tally.add("cut_headers", np.count_nonzero(~is_whole))
    at = np.where(is_whole, at, 0)
    sport = read.u16[at].astype(np.int64)
    dport = read.u16[at + 2].astype(np.int64)
    known = np.array(sorted(ports))
    from_known, to_known = np.isin(sport, known), np.isin(dport, known)
    is_ours = from_known | to_known
    tally.add("cut_frames", np.count_nonzero((end_ip > end) & (is_ours | ~is_whole)))
    keep = np.flatnonzero(is_whole & is_ours)
    tally.add("other_ports", np.count_nonzero(is_whole) - len(keep))
    keeps_all = len(keep) == len(at)
    if not keeps_all:
        _other_ports(read, tally, at, np.minimum(end, end_ip), dport, is_whole, keep)

    some = [sport, dport, at, end_ip, end, to_known, from_known, frames.ts[index], *halves]
    some = some if keeps_all else [one[keep] for one in some]
    sport, dport, at, end_ip, end, to_server, both, ts, *ends = some
    source, target = ends[:2], ends[2:]
    both = both & to_server
    if both.any():
        # If both ends have MQTT ports, the higher address and port counts as the server.
        (high, low), (own_high, own_low) = target, source
        higher = (low > own_low) | ((low == own_low) & (dport > sport))
        higher = (high > own_high) | ((high == own_high) & higher)
        to_server = np.where(both, higher, to_server)
    start = at + (read.u8[at + 12] >> 4).astype(np.int64) * 4
    size = np.maximum(end_ip - start, 0)
    tally.add("segments", len(at))
    found = Segments(
        data=read.u8,
        client_high=np.where(to_server, source[0], target[0]),
        client_low=np.where(to_server, source[1], target[1]),
        server_high=np.where(to_server, target[0], source[0]),
        server_low=np.where(to_server, target[1], source[1]),
        ports=np.where(to_server, sport << 16 | dport, dport << 16 | sport),
        to_server=to_server,
        seq=read.u32[at + 4].astype(np.int64),
        ack=read.u32[at + 8].astype(np.int64),
        flags=read.u8[at + 13],
        start=start,
        size=size,
        held=np.clip(np.minimum(end, end_ip) - start, 0, size),
        offset=frames.base + start,
        ts=ts,
    )
    return found.take(np.flatnonzero((size > 0) | (found.flags & (FIN | SYN | RST) != 0)))


def _other_ports(read, tally, at, end, dport, is_whole, keep):
    # Tell of a CONNECT to a port that --ports does not name, as its traffic is not read.
    rest = is_whole.copy()
    rest[keep] = False
    at, end, dport = at[rest], end[rest], dport[rest]
    start = at + (read.u8[at + 12] >> 4).astype(np.int64) * 4
    long = start + 12 <= end
    start, dport = start[long], dport[long]
    start, dport = (one[read.u8[start] == _CONNECT] for one in (start, dport))
    body = start + 2 + (read.u8[start + 1] > 127)
    name = read.u32[body + 2]
    is_mqtt = (name == _MQTT) | (name == _MQIS)
    for port, count in zip(*np.unique(dport[is_mqtt], return_counts=True), strict=True):
        tally.add("mqtt_on_port_%d" % port, count)
