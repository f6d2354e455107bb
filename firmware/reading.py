"""Writes the envelope of one sensor sample (docs/reference/readings.md) without allocating.

One buffer serves all readings: a reading is complete until the next `clear()`.
Big-endian, as the network has it.
"""

import struct

MAGIC = 0x75
LAYOUT = 2
MAX_VALUES = 9

TEMPERATURE = 1  # 0.01 °C
HUMIDITY = 2  # 0.01 %
PRESSURE = 3  # Pa
SUPPLY = 4  # mV
SIGNAL = 5  # dBm
FREE_HEAP = 6  # bytes

_HEADER_BYTES = 41
_VALUE_BYTES = 5
_TIME_BYTES = 4


class Reading:
    """The envelope of `device` (client id, str), filled again for every sample.

    `firmware` is major × 256 + minor, `boot` the boot counter.
    """

    def __init__(self, device, firmware, boot):
        self._buf = buf = bytearray(_HEADER_BYTES + _VALUE_BYTES * MAX_VALUES + _TIME_BYTES)
        struct.pack_into(">BBHI", buf, 0, MAGIC, LAYOUT, firmware, boot)
        struct.pack_into("23s", buf, 18, device.encode())
        whole = memoryview(buf)
        # Slicing allocates, so there is one view ready for every length.
        fixed = _HEADER_BYTES + _TIME_BYTES
        self._views = [whole[: fixed + _VALUE_BYTES * n] for n in range(MAX_VALUES + 1)]
        self._count = 0

    def clear(self):
        """Forget the values: a new sample begins."""
        self._count = 0

    def add(self, kind, value):
        """Append one value; what does not fit any more is left out -> bool.

        Raises TypeError or ValueError unless it is a whole number of 32 bits.
        """
        if value >> 31 not in (0, -1):  # MicroPython would cut it
            raise ValueError("%d has more than 32 bits" % value)
        if self._count == MAX_VALUES:
            return False
        struct.pack_into(">Bi", self._buf, _HEADER_BYTES + _VALUE_BYTES * self._count, kind, value)
        self._count += 1
        return True

    def number(self, stream, sequence, uptime_s, time_high=0, time_low=0):
        """Address the sample to a stream -> memoryview of the whole envelope.

        The time, seconds since 1970, comes in two halves of 16 bits: as one number it
        would be too large for the small integers of a 32-bit port.
        """
        struct.pack_into(">II", self._buf, 8, sequence, uptime_s)
        struct.pack_into(">BB", self._buf, 16, stream, self._count)
        end = _HEADER_BYTES + _VALUE_BYTES * self._count
        struct.pack_into(">HH", self._buf, end, time_high, time_low)
        return self._views[self._count]
