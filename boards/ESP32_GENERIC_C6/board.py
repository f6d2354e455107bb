"""ESP32-C6-DevKitC-1; its LED is an RGB chip, so there is no plain one."""

from port import halt, journal, journal_area, reset

NAME = "ESP32_GENERIC_C6"
NETWORK = "wifi"
LED_PIN = None
LED_ON = 1
WATCHDOG_MS = 30000

_SDA_PIN = 6
_SCL_PIN = 7


def sensors():
    """What this board measures with -> list of sensors."""
    from sensors.health import FreeHeap, Signal
    from sensors.internal import Esp32Temperature

    return [Esp32Temperature(), Signal(), FreeHeap()]


def i2c():
    """The bus for sensors that you connect -> machine.I2C."""
    from machine import I2C, Pin

    return I2C(0, sda=Pin(_SDA_PIN), scl=Pin(_SCL_PIN))
