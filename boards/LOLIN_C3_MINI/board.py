"""LOLIN C3 mini: a plain LED on version 1, an RGB chip on the same pin on version 2."""

from port import *

LED_PIN = 7
LED_ON = 0
SDA_PIN = 8
SCL_PIN = 10
