"""Readings as the sensor node writes them (docs/reference/readings.md)."""

import struct

_PACK = struct.Struct(">BBHIIIBB23sBiBi").pack


def reading(firmware, boot, sequence, uptime_s, stream, device, values):
    """The payload of one reading with two values, temperature and supply voltage."""
    return _PACK(
        0x75, 1, firmware, boot, sequence, uptime_s, stream, 2, device, 1, values[0], 4, values[1]
    )
