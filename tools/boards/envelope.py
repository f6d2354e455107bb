"""A reading as a device sends it (docs/reference/readings.md), in units that people use."""

import struct
from collections import Counter
from dataclasses import dataclass

_MAGIC = 0x75
_HEADER = struct.Struct(">BBHIIIBB23s")
_VALUE = struct.Struct(">Bi")
_HEALTH_STREAM = 255

# kind: (name, divisor to its usual unit, text)
_KINDS = {
    1: ("temperature", 100, "{:.2f} °C"),
    2: ("humidity", 100, "{:.1f} %"),
    3: ("pressure", 100, "{:.1f} hPa"),
    4: ("supply", 1000, "{:.2f} V"),
    5: ("signal", 1, "{} dBm"),
    6: ("free_heap", 1, "{:,} B free"),
    16: ("cause", 1, "{}"),
    17: ("largest_block", 1, "largest block {:,} B"),
    18: ("reconnects", 1, "{} reconnects"),
    19: ("drops", 1, "{} drops"),
    20: ("fill", 100, "{:.1f} % full"),
    21: ("corrupt_pages", 1, "{} corrupt pages"),
    22: ("bad_blocks", 1, "{} bad blocks"),
    23: ("journal_failed", 1, "journal stopped"),
    24: ("forged_commands", 1, "{} forged commands"),
}
_CAUSES = "started,switched on,reset,reset by its watchdog,woke,restarted".split(",")


@dataclass(frozen=True)
class Envelope:
    """One envelope; `time` in seconds since 1970, None when the device did not know it.

    `values` is a list of (kind, number) as sent.
    """

    device: str
    firmware: str
    boot: int
    sequence: int
    uptime_s: int
    stream: int
    time: int | None
    values: list

    @property
    def is_health(self):
        """Is it about the device itself?"""
        return self.stream == _HEALTH_STREAM

    def named_values(self):
        """{name: number in its usual unit}; own kinds are kind_N, a second value name_2."""
        named, counts = {}, Counter()
        for kind, number in self.values:
            name, divisor, _ = _KINDS.get(kind, (f"kind_{kind}", 1, ""))
            counts[kind] += 1
            if counts[kind] > 1:
                name += f"_{counts[kind]}"
            named[name] = number / divisor if divisor > 1 else number
        return named

    def texts(self):
        """The values as a person reads them."""
        return [_text(kind, number) for kind, number in self.values]


def read_envelope(data):
    """bytes -> Envelope, or None when they are none."""
    if len(data) < _HEADER.size or data[0] != _MAGIC or data[1] not in (1, 2):
        return None
    fields = _HEADER.unpack_from(data)
    version, firmware, boot, sequence, uptime_s, stream, count, device = fields[1:]
    end = _HEADER.size + count * _VALUE.size
    if len(data) != end + 4 * (version - 1):
        return None
    values = [_VALUE.unpack_from(data, at) for at in range(_HEADER.size, end, _VALUE.size)]
    seconds = int.from_bytes(data[end:], "big") if version == 2 else 0
    name = device.rstrip(b"\0").decode(errors="replace")
    release = f"{firmware >> 8}.{firmware & 255}"
    return Envelope(name, release, boot, sequence, uptime_s, stream, seconds or None, values)


def _text(kind, number):
    if kind == 16:
        return _CAUSES[number] if 0 <= number < len(_CAUSES) else f"cause {number}"
    if kind not in _KINDS:
        return f"kind {kind}: {number}"
    _, divisor, text = _KINDS[kind]
    return text.format(number / divisor if divisor > 1 else number)
