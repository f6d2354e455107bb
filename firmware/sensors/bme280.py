"""Bosch BME280 on I2C: temperature, relative humidity and air pressure.

Source: Bosch datasheet BST-BME280-DS002, sections 4.2 (compensation) and 5.4 (registers).
Its pressure needs 64 bits, so measuring allocates.
"""

import struct
import time

from reading import HUMIDITY, PRESSURE, TEMPERATURE

_CALIBRATION = 0x88, 26
_CALIBRATION_HUMIDITY = 0xE1, 7
_CONTROL_HUMIDITY = 0xF2
_CONTROL = 0xF4
_DATA = 0xF7
_ONCE = b"\x25"  # temperature and pressure once each, forced mode
_MEASURING_MS = 10  # section 9.1: 9.3 ms at most


class BME280:
    """`i2c` is a machine.I2C; `address` 0x76, or 0x77 with SDO tied high."""

    def __init__(self, i2c, address=0x76):
        self._i2c = i2c
        self._address = address
        self._t = None  # calibration, read when the part first answers
        self._buf = bytearray(8)

    def measure(self, reading):
        """Blocks for 10 ms.  Raises OSError when the part is silent."""
        if not self._t:
            self._calibrate()
        self._i2c.writeto_mem(self._address, _CONTROL_HUMIDITY, b"\x01")
        self._i2c.writeto_mem(self._address, _CONTROL, _ONCE)
        time.sleep_ms(_MEASURING_MS)
        buf = self._buf
        self._i2c.readfrom_mem_into(self._address, _DATA, buf)
        fine = self._fine(buf[3] << 12 | buf[4] << 4 | buf[5] >> 4)
        reading.add(TEMPERATURE, fine * 5 + 128 >> 8)
        reading.add(HUMIDITY, self._humidity(buf[6] << 8 | buf[7], fine))
        reading.add(PRESSURE, self._pressure(buf[0] << 12 | buf[1] << 4 | buf[2] >> 4, fine))

    def _calibrate(self):
        data = self._i2c.readfrom_mem(self._address, *_CALIBRATION)
        found = struct.unpack("<HhhHhhhhhhhhBB", data)
        h2, h3, e4, e5, e6, h6 = struct.unpack(
            "<hBbBbb", self._i2c.readfrom_mem(self._address, *_CALIBRATION_HUMIDITY)
        )
        self._p = found[3:12]
        self._h = found[13], h2, h3, e4 << 4 | e5 & 15, e6 << 4 | e5 >> 4, h6
        self._t = found[:3]

    def _fine(self, raw):
        t1, t2, t3 = self._t
        part = (raw >> 4) - t1
        return (((raw >> 3) - (t1 << 1)) * t2 >> 11) + ((part * part >> 12) * t3 >> 14)

    def _pressure(self, raw, fine):
        p1, p2, p3, p4, p5, p6, p7, p8, p9 = self._p
        a = fine - 128000
        b = a * a * p6 + (a * p5 << 17) + (p4 << 35)
        a = ((1 << 47) + (a * a * p3 >> 8) + (a * p2 << 12)) * p1 >> 33
        if not a:
            raise OSError("BME280: no calibration; check wiring")
        pressure = ((1048576 - raw << 31) - b) * 3125 // a
        a = p9 * (pressure >> 13) * (pressure >> 13) >> 25
        return (pressure + a + (p8 * pressure >> 19) >> 8) + (p7 << 4) >> 8

    def _humidity(self, raw, fine):
        h1, h2, h3, h4, h5, h6 = self._h
        v = fine - 76800
        scale = ((v * h6 >> 10) * ((v * h3 >> 11) + 32768) >> 10) + 2097152
        v = ((raw << 14) - (h4 << 20) - h5 * v + 16384 >> 15) * (scale * h2 + 8192 >> 14)
        v -= ((v >> 15) * (v >> 15) >> 7) * h1 >> 4
        return (min(max(v, 0), 419430400) >> 12) * 100 >> 10
