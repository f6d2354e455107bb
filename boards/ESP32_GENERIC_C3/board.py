"""ESP32-C3 boards with the usual LED on GPIO 8, lit by a low level."""

from port import halt, journal, journal_area, reset

NAME = "ESP32_GENERIC_C3"
NETWORK = "wifi"
LED_PIN = 8
LED_ON = 0
WATCHDOG_MS = 30000

_SDA_PIN = 4
_SCL_PIN = 5


def sensors():
    """What this board measures with -> list of sensors."""
    from sensors.health import FreeHeap, Signal
    from sensors.internal import Esp32Temperature

    return [Esp32Temperature(), Signal(), FreeHeap()]


def i2c():
    """The bus for sensors that you connect -> machine.I2C."""
    from machine import I2C, Pin

    return I2C(0, sda=Pin(_SDA_PIN), scl=Pin(_SCL_PIN))
