"""Maxim DS18B20 on a 1-Wire bus: temperature; several on one pin each give a value.

With `onewire` and `ds18x20`, which the esp32 and rp2 ports bring along.  Source: datasheet
DS18B20, table 2 (resolution).  Allocates.
"""

import time

from reading import TEMPERATURE

_ELEVEN_BITS = b"\0\0\x5f"  # alarms, which nobody asks for; 0.125 °C
_MEASURING_MS = 375


class DS18B20:
    """`bus` is a ds18x20.DS18X20."""

    def __init__(self, bus):
        self._bus = bus
        self._parts = []

    def measure(self, reading):
        """Blocks for 375 ms.  Raises OSError when no part answers."""
        bus = self._bus
        if not self._parts:
            self._parts = sorted(bytes(one) for one in bus.scan() if one[0] != 0x10)
            for part in self._parts:
                bus.write_scratch(part, _ELEVEN_BITS)
        if not self._parts:
            raise OSError("DS18B20: no part answers; check wiring and the pull-up")
        bus.convert_temp()
        time.sleep_ms(_MEASURING_MS)
        for part in self._parts:
            data = bus.read_scratch(part)
            raw = data[1] << 8 | data[0]
            reading.add(TEMPERATURE, (raw - (raw >> 15 << 16)) * 25 >> 2)
