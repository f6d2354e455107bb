"""Raspberry Pi Pico W; the LED hangs on the radio, not on a pin."""

from port import *

NAME = "RPI_PICO_W"
LED_PIN = "LED"
SDA_PIN = 4
SCL_PIN = 5
