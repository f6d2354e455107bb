"""Raspberry Pi Pico 2 W; the LED hangs on the radio, not on a pin."""

from port import halt, journal, journal_area, reset

NAME = "RPI_PICO2_W"
NETWORK = "wifi"
LED_PIN = "LED"
LED_ON = 1
WATCHDOG_MS = 8300

_SDA_PIN = 4
_SCL_PIN = 5


def sensors():
    """What this board measures with -> list of sensors."""
    from sensors.health import FreeHeap, Signal
    from sensors.internal import RP2Temperature

    return [RP2Temperature(), Signal(), FreeHeap()]


def i2c():
    """The bus for sensors that you connect -> machine.I2C."""
    from machine import I2C, Pin

    return I2C(0, sda=Pin(_SDA_PIN), scl=Pin(_SCL_PIN))
