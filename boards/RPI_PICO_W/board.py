"""Raspberry Pi Pico W; the LED hangs on the radio, not on a pin."""

from port import *

LED_PIN = "LED"
SDA_PIN = 4
SCL_PIN = 5
