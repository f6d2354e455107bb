"""The same TCP segment in every frame format that the pipeline knows."""

import struct

IPV4 = bytes((10, 9, 8, 7)), bytes((10, 0, 0, 1))
IPV6 = bytes.fromhex("fd0000000000000000000000000000aa"), bytes.fromhex("fd" + "00" * 14 + "01")


def tcp(payload, seq=1, port=40_000, flags=0x18):
    """A TCP segment to port 1883."""
    return struct.pack(">HHIIHHHH", port, 1883, seq, 1, 0x5000 | flags, 1024, 0, 0) + payload


def ipv4(segment, fragment=0, options=b"", proto=6):
    """An IPv4 packet."""
    size = 20 + len(options)
    head = struct.pack(
        ">BBHHHBBH", 0x40 | size // 4, 0, size + len(segment), 1, fragment, 64, proto, 0
    )
    return head + IPV4[0] + IPV4[1] + options + segment


def ipv6(segment, extensions=()):
    """An IPv6 packet; extensions are (type, bytes whose first byte is filled in here)."""
    kinds = [kind for kind, _ in extensions] + [6]
    body = b"".join(
        bytes((after,)) + data[1:] for (_, data), after in zip(extensions, kinds[1:], strict=True)
    )
    body += segment
    return struct.pack(">IHBB", 6 << 28, len(body), kinds[0], 64) + IPV6[0] + IPV6[1] + body


_MAC = bytes(12)
_HOP = (0, bytes((0, 0, 1, 4, 0, 0, 0, 0)))
_ROUTE = (43, bytes(24)[:1] + bytes((2,)) + bytes(22))
_ATOMIC = (44, bytes(8))
_OPTIONS = (60, bytes(8))
_AUTHENTICATION = (51, bytes((0, 4)) + bytes(22))


_SNAP = b"\xaa\xaa\x03\x00\x00\x00"


def _length(packet):
    return (len(packet) + 8).to_bytes(2, "big")


def cases(segment):
    """{name: (link type, frame)} of one segment."""
    four, six = ipv4(segment), ipv6(segment)
    return {
        "ethernet ipv4": (1, _MAC + b"\x08\x00" + four),
        "ethernet padded": (1, (_MAC + b"\x08\x00" + four).ljust(200, b"\xee")),
        "ethernet ipv4 options": (1, _MAC + b"\x08\x00" + ipv4(segment, options=bytes(8))),
        "ethernet ipv6": (1, _MAC + b"\x86\xdd" + six),
        "vlan": (1, _MAC + b"\x81\x00\x00\x05\x08\x00" + four),
        "qinq": (1, _MAC + b"\x88\xa8\x00\x07\x81\x00\x00\x05\x86\xdd" + six),
        "snap": (1, _MAC + _length(four) + _SNAP + b"\x08\x00" + four),
        "vlan snap": (1, _MAC + b"\x81\x00\x00\x05" + _length(six) + _SNAP + b"\x86\xdd" + six),
        "linux cooked": (113, bytes(14) + b"\x08\x00" + four),
        "linux cooked vlan": (113, bytes(14) + b"\x81\x00\x00\x05\x08\x00" + four),
        "linux cooked 2": (276, b"\x86\xdd" + bytes(18) + six),
        "null little endian": (0, b"\x02\x00\x00\x00" + four),
        "null big endian ipv6": (0, b"\x00\x00\x00\x1e" + six),
        "openbsd loop": (108, b"\x00\x00\x00\x02" + four),
        "raw ipv4": (101, four),
        "raw ipv6": (101, six),
        "raw bsd": (12, four),
        "link type ipv4": (228, four),
        "link type ipv6": (229, six),
        "ipv6 hop by hop": (101, ipv6(segment, [_HOP])),
        "ipv6 many extensions": (101, ipv6(segment, [_HOP, _ROUTE, _OPTIONS, _AUTHENTICATION])),
        "ipv6 atomic fragment": (101, ipv6(segment, [_ATOMIC])),
    }


def pcap(frames, link, order="<", nano=False, start_s=1_700_000_000):
    """A pcap file of frames, a second apart."""
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    out = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262_144, link)]
    fraction = 250_000_000 if nano else 250_000
    for number, frame in enumerate(frames):
        size = len(frame)
        out.append(struct.pack(order + "IIII", start_s + number, fraction, size, size) + frame)
    return b"".join(out)


def pcapng(frames, links, order="<", resolution=None, start_s=1_700_000_000):
    """A pcapng file; frames are (interface, bytes) or bytes for a simple packet block."""
    out = [_block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))]
    options = b"" if resolution is None else struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)
    for link in links:
        out.append(_block(order, 1, struct.pack(order + "HHI", link, 0, 0) + options))
    units = 1_000_000
    if resolution is not None:
        units = 2 ** (resolution & 127) if resolution & 128 else 10**resolution
    for number, frame in enumerate(frames):
        if isinstance(frame, bytes):
            out.append(_block(order, 3, struct.pack(order + "I", len(frame)) + frame))
            continue
        interface, data = frame
        ts = (start_s + number) * units + units // 4
        head = struct.pack(
            order + "IIIII", interface, ts >> 32, ts & 0xFFFFFFFF, len(data), len(data)
        )
        out.append(_block(order, 6, head + data))
        out.append(_block(order, 5, bytes(12)))  # statistics: passed over
    return b"".join(out)


def _block(order, kind, body):
    body = body.ljust(len(body) + 3 & ~3, b"\0")
    size = len(body) + 12
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)
