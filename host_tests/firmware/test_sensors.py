"""Sensor drivers against the figures of their datasheets."""

import sys
from types import SimpleNamespace

import pytest

from sensors.internal import Esp32Temperature, RP2Temperature
from sensors.sht3x import SHT3x
from sensors.simulated import Simulated


class Values(list):
    """Takes what a sensor measures."""

    def add(self, kind, value):
        self.append((kind, value))


class FakeI2C:
    def __init__(self, answer):
        self.answer = answer
        self.written = []

    def writeto(self, address, data):
        self.written.append((address, bytes(data)))

    def readfrom_into(self, address, buf):
        buf[:] = self.answer


def measured(sensor):
    values = Values()
    sensor.measure(values)
    return values


# CRC 0x92 of 0xBEEF is the datasheet's example (section 4.12).
@pytest.mark.parametrize(
    ("answer", "values"),
    [
        ("beef92" + "beef92", [(1, 8552), (2, 7458)]),
        ("000081" + "000081", [(1, -4500), (2, 0)]),
        ("ffffac" + "ffffac", [(1, 12999), (2, 9999)]),
    ],
)
def test_sht3x_answer_is_converted_as_in_the_datasheet(answer, values):
    i2c = FakeI2C(bytes.fromhex(answer))
    slept = []
    assert measured(SHT3x(i2c, sleep_ms=slept.append)) == values
    assert i2c.written == [(0x44, b"\x24\x00")]
    assert slept == [16]


@pytest.mark.parametrize("answer", ["beef93beef92", "beef92beef93"])
def test_sht3x_with_wrong_crc_raises_oserror(answer):
    sensor = SHT3x(FakeI2C(bytes.fromhex(answer)), sleep_ms=lambda ms: None)
    with pytest.raises(OSError, match="CRC"):
        measured(sensor)


def test_rp2_temperature_at_706_millivolts_is_27_degrees(monkeypatch):
    raw = [14021]  # 706 mV of 3.3 V in 65536 steps

    class ADC:
        CORE_TEMP = 4

        def __init__(self, channel):
            assert channel == 4

        def read_u16(self):
            return raw[0]

    monkeypatch.setitem(sys.modules, "machine", SimpleNamespace(ADC=ADC))
    sensor = RP2Temperature()
    assert measured(sensor) == [(1, pytest.approx(2700, abs=5))]
    raw[0] = 13338  # 34.42 mV less: 20 °C more
    assert measured(sensor) == [(1, pytest.approx(4700, abs=5))]


def test_esp32_temperature_uses_what_the_chip_has(monkeypatch):
    monkeypatch.setitem(sys.modules, "esp32", SimpleNamespace(mcu_temperature=lambda: 41))
    assert measured(Esp32Temperature()) == [(1, 4100)]
    monkeypatch.setitem(sys.modules, "esp32", SimpleNamespace(raw_temperature=lambda: 122))
    assert measured(Esp32Temperature()) == [(1, 5000)]


def test_simulated_sensor_stays_in_its_range_and_repeats():
    runs = [[measured(sensor) for _ in range(400)] for sensor in (Simulated(), Simulated())]
    assert runs[0] == runs[1]
    temperatures = [values[0][1] for values in runs[0]]
    assert (min(temperatures), max(temperatures)) == (1500, 2500)
