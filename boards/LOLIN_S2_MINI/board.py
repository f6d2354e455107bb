"""LOLIN S2 mini."""

from port import *

LED_PIN = 15
SDA_PIN = 33
SCL_PIN = 35
