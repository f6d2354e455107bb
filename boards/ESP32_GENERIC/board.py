"""ESP32 DevKitC and its many relatives; their LED is usually on GPIO 2."""

from port import halt, journal, journal_area, reset

NAME = "ESP32_GENERIC"
NETWORK = "wifi"
LED_PIN = 2
LED_ON = 1
WATCHDOG_MS = 30000

_SDA_PIN = 19
_SCL_PIN = 18


def sensors():
    """What this board measures with -> list of sensors."""
    from sensors.health import FreeHeap, Signal
    from sensors.internal import Esp32Temperature

    return [Esp32Temperature(), Signal(), FreeHeap()]


def i2c():
    """The bus for sensors that you connect -> machine.I2C."""
    from machine import I2C, Pin

    return I2C(0, sda=Pin(_SDA_PIN), scl=Pin(_SCL_PIN))
