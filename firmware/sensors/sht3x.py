"""Sensirion SHT30, SHT31, SHT35 on I2C: temperature and relative humidity.

Source: Sensirion datasheet SHT3x-DIS, sections 4.3 (single shot), 4.12 (CRC) and
4.13 (conversion).
"""

import time

from reading import HUMIDITY, TEMPERATURE

# High repeatability, no clock stretching; ready after at most 15.5 ms.
_SINGLE_SHOT = b"\x24\x00"
_MEASURING_MS = 16


class SHT3x:
    """`i2c` is a machine.I2C; `address` 0x44, or 0x45 with ADDR tied high."""

    def __init__(self, i2c, address=0x44):
        self._i2c = i2c
        self._address = address
        self._buf = bytearray(6)

    def measure(self, reading):
        """Blocks for 16 ms.  Raises OSError when the part is silent or the CRC wrong."""
        self._i2c.writeto(self._address, _SINGLE_SHOT)
        time.sleep_ms(_MEASURING_MS)
        self._i2c.readfrom_into(self._address, self._buf)
        temperature = self._word(0)
        humidity = self._word(3)
        # 175/65535 and 100/65535 with powers of two stay in small integers and
        # are wrong by less than 0.005 units.
        reading.add(TEMPERATURE, (temperature * 4375 >> 14) - 4500)
        reading.add(HUMIDITY, humidity * 625 >> 12)

    def _word(self, at):
        # Two bytes and their CRC-8: polynomial 0x31, start 0xFF.
        crc = 0xFF
        for i in range(at, at + 2):
            crc ^= self._buf[i]
            for _ in range(8):
                crc = (crc << 1 ^ 0x31) & 0xFF if crc & 0x80 else crc << 1
        if crc != self._buf[at + 2]:
            raise OSError("SHT3x: wrong CRC; check wiring and pull-ups")
        return self._buf[at] << 8 | self._buf[at + 1]
