"""Raspberry Pi Pico W; the LED hangs on the radio, not on a pin."""

from port import *

NAME = "RPI_PICO_W"
NETWORK = "wifi"
LED_PIN = "LED"
LED_ON = 1
WATCHDOG_MS = 8300
SDA_PIN = 4
SCL_PIN = 5
