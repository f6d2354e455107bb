"""Readings and proofs with code of their own, from docs/reference/readings.md and docs/guides."""

import hmac


def decode(envelope: bytes) -> dict:
    """One envelope as a dict; `values` is a list of (kind, value)."""

    def number(start, size, signed=False):
        return int.from_bytes(envelope[start : start + size], "big", signed=signed)

    count = number(17, 1)
    end = 41 + 5 * count
    assert number(1, 1) == 2
    assert len(envelope) == end + 4
    return {
        "magic": number(0, 1),
        "version": number(1, 1),
        "firmware": number(2, 2),
        "boot": number(4, 4),
        "sequence": number(8, 4),
        "uptime_s": number(12, 4),
        "stream": number(16, 1),
        "device": envelope[18:41].rstrip(b"\0").decode(),
        "time": number(end, 4),
        "values": [(number(41 + 5 * i, 1), number(42 + 5 * i, 4, True)) for i in range(count)],
    }


def readings_of(collector, stream: int | None = None) -> list[dict]:
    """What a tools.demo.collector.Collector has heard, of one stream or of all."""
    decoded = [decode(one.payload) for one in collector.arrivals]
    return [one for one in decoded if stream in (None, one["stream"])]


def proof(key: bytes, magic: bytes, *parts: bytes) -> bytes:
    """As firmware/signature.py writes it."""
    data = magic + b"".join(len(one).to_bytes(2, "big") + one for one in parts)
    return hmac.digest(key, data, "sha256")[:16].hex().encode()


def proven(key: bytes, topic: bytes, answer: bytes, nonce: bytes = b"") -> bytes:
    """An answer with its proof."""
    return answer + b" " + proof(key, b"u31a\x01", nonce, topic, answer)
