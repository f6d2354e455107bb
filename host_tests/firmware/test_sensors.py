"""Sensor drivers, also those that a setting adds, against the figures of their datasheets."""

import struct
import sys
import time
from types import SimpleNamespace
from unittest.mock import Mock, call

import pytest

from assemble import assemble, sensors_of
from host_tests.firmware.node_bench import CONFIG, FakeNetwork
from sensors.battery import Battery
from sensors.bme280 import BME280
from sensors.ds18b20 import DS18B20
from sensors.internal import Esp32Temperature, RP2Temperature
from sensors.sht3x import SHT3x
from sensors.simulated import Simulated


class Values(list):
    """Takes what a sensor measures."""

    def add(self, kind, value):
        self.append((kind, value))


def i2c_of(answer):
    """A bus on which a part answers so, in hex."""

    def readfrom_into(address, buf):
        buf[:] = bytes.fromhex(answer)

    return Mock(readfrom_into=readfrom_into)


@pytest.fixture
def slept(monkeypatch):
    """The milliseconds of each sleep."""
    found = []
    monkeypatch.setattr(time, "sleep_ms", found.append)
    return found


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
def test_sht3x_answer_is_converted_as_in_the_datasheet(slept, answer, values):
    i2c = i2c_of(answer)
    assert measured(SHT3x(i2c)) == values
    i2c.writeto.assert_called_once_with(0x44, b"\x24\x00")
    assert slept == [16]


@pytest.mark.parametrize("answer", ["beef93beef92", "beef92beef93"])
def test_sht3x_with_wrong_crc_raises_oserror(slept, answer):
    with pytest.raises(OSError, match="CRC"):
        measured(SHT3x(i2c_of(answer)))


def test_rp2_temperature_at_706_millivolts_is_27_degrees(monkeypatch):
    adc = Mock(CORE_TEMP=4)
    # 706 mV of 3.3 V in 65536 steps; 34.42 mV less: 20 °C more
    adc.return_value.read_u16.side_effect = [14021, 13338]
    monkeypatch.setitem(sys.modules, "machine", SimpleNamespace(ADC=adc))
    sensor = RP2Temperature()
    adc.assert_called_once_with(4)
    assert measured(sensor) == [(1, pytest.approx(2700, abs=5))]
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


# The example of Bosch's datasheet BST-BMP280-DS001, section 3.12, whose formulas are the same.
T = 27504, 26435, -1000
P = 36477, -10685, 3024, 2855, 140, -7, 15500, -14600, 6000
H = 75, 370, 0, 313, 50, 30  # of a part
RAW_T, RAW_P = 519888, 415148


class BMEI2C:
    """A BME280 as its registers show it."""

    def __init__(self, raw_humidity):
        h1, h2, h3, h4, h5, h6 = H
        self._memory = {
            0x88: struct.pack("<HhhHhhhhhhhhBB", *T, *P, 0, h1),
            0xE1: struct.pack("<hBbBbb", h2, h3, h4 >> 4, h4 & 15 | (h5 & 15) << 4, h5 >> 4, h6),
            0xF7: (RAW_P << 4).to_bytes(3, "big")
            + (RAW_T << 4).to_bytes(3, "big")
            + raw_humidity.to_bytes(2, "big"),
        }
        self.written = []

    def readfrom_mem(self, address, register, count):
        assert address == 0x76
        return self._memory[register][:count]

    def readfrom_mem_into(self, address, register, buf):
        buf[:] = self.readfrom_mem(address, register, len(buf))

    def writeto_mem(self, address, register, data):
        self.written.append((register, data[0]))


def humidity_in_floats(raw):
    """Of the same datasheet, section 8.1: in double precision."""
    h1, h2, h3, h4, h5, h6 = H
    v = 128422 - 76800.0
    v = (raw - (h4 * 64.0 + h5 / 16384.0 * v)) * (
        h2 / 65536.0 * (1.0 + h6 / 67108864.0 * v * (1.0 + h3 / 67108864.0 * v))
    )
    return min(max(v * (1.0 - h1 * v / 524288.0), 0), 100)


@pytest.mark.parametrize("raw", [0, 24000, 28000, 33000, 40000, 65535])
def test_bme280_is_converted_as_in_the_datasheet(slept, raw):
    i2c = BMEI2C(raw)
    temperature, humidity, pressure = measured(BME280(i2c))
    assert (temperature, pressure) == ((1, 2508), (3, 100653))
    assert humidity == (2, pytest.approx(humidity_in_floats(raw) * 100, abs=3))
    assert i2c.written == [(0xF2, 1), (0xF4, 0x25)]
    assert slept == [10]


def one_wire(parts):
    """1-Wire with parts: {code: what their scratchpad begins with}."""
    return Mock(scan=lambda: [bytearray(code) for code in parts], read_scratch=parts.get)


# Table 1 of the datasheet.
@pytest.mark.parametrize(
    ("raw", "value"), [(0x07D0, 12500), (0x0191, 2506), (0, 0), (0xFFF8, -50), (0xFC90, -5500)]
)
def test_ds18b20_is_converted_as_in_the_datasheet(monkeypatch, raw, value):
    bus = one_wire({b"\x28b": raw.to_bytes(2, "little"), b"\x28a": b"\0\0", b"\x10x": b""})
    monkeypatch.setattr(time, "sleep_ms", bus.sleep_ms)
    sensor = DS18B20(bus)
    assert measured(sensor) == measured(sensor) == [(1, 0), (1, value)]
    set_up = [call.write_scratch(part, b"\0\0\x5f") for part in (b"\x28a", b"\x28b")]
    assert bus.mock_calls == set_up + [call.convert_temp(), call.sleep_ms(375)] * 2


def test_ds18b20_without_a_part_raises_oserror_until_there_is_one(slept):
    parts = {}
    sensor = DS18B20(one_wire(parts))
    with pytest.raises(OSError, match="no part answers"):
        measured(sensor)
    parts[b"\x28a"] = b"\x08\0"
    assert measured(sensor) == [(1, 50)]


def test_battery_is_the_mean_behind_its_divider():
    uv = iter(range(1_800_000, 1_808_000, 1000))
    assert measured(Battery(SimpleNamespace(read_uv=lambda: next(uv)))) == [(4, 3606)]
    rp2 = SimpleNamespace(read_u16=lambda: 32768)
    assert measured(Battery(rp2, percent=300)) == [(4, 4950)]


@pytest.fixture
def connected(monkeypatch):
    """MicroPython's modules for what is connected to a board."""
    machine = SimpleNamespace(Pin=lambda number: ("pin", number), ADC=lambda pin: ("adc", pin))
    monkeypatch.setitem(sys.modules, "machine", machine)
    monkeypatch.setitem(sys.modules, "onewire", SimpleNamespace(OneWire=lambda pin: pin))
    monkeypatch.setitem(sys.modules, "ds18x20", SimpleNamespace(DS18X20=lambda wire: wire))


def test_setting_sensors_makes_them_after_the_boards_own(connected):
    board = SimpleNamespace(sensors=lambda: ["own"], i2c=lambda: "i2c")
    found = sensors_of("bme280 sht3x ds18b20:4 battery:35:200", board)
    names = [type(one).__name__ for one in found[1:]]
    assert found[0] == "own"
    assert names == ["BME280", "SHT3x", "DS18B20", "Battery"]
    assert sensors_of("", board) == ["own"]


@pytest.mark.parametrize(
    ("word", "error", "told"),
    [
        ("ds18b20:99", ValueError("invalid pin"), "invalid pin"),
        ("battery:99999999999", OverflowError("too large"), "too large"),
        ("bme280", None, "'types.SimpleNamespace' object has no attribute 'i2c'"),
    ],
)
def test_sensor_that_cannot_be_connected_is_named(connected, monkeypatch, word, error, told):
    """`invalid pin` told nobody which key; other errors reset the board every five seconds."""
    monkeypatch.setattr(sys.modules["machine"], "Pin", Mock(side_effect=error))
    with pytest.raises(ValueError, match=f"^sensors: {word}: {told}$"):
        sensors_of(word, SimpleNamespace(sensors=list))


def test_board_whose_sensors_cannot_be_made_starts_no_watchdog(tmp_path, monkeypatch, capsys):
    """It reset the board again and again, and nobody could read why."""
    monkeypatch.chdir(tmp_path)
    machine = Mock()
    monkeypatch.setitem(sys.modules, "machine", machine)
    board = SimpleNamespace(
        NAME="fake", NETWORK="host", HostNetwork=FakeNetwork, WATCHDOG_MS=8300,
        reset_cause=int, sensors=Mock(side_effect=ValueError("invalid pin")),
    )  # fmt: skip
    assert assemble(CONFIG | {"store": "ram"}, board) is None
    assert "cannot start: invalid pin" in capsys.readouterr().out
    machine.WDT.assert_not_called()
