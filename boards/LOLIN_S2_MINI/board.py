"""LOLIN S2 mini."""

from port import *

NAME = "LOLIN_S2_MINI"
NETWORK = "wifi"
LED_PIN = 15
LED_ON = 1
WATCHDOG_MS = 30000
SDA_PIN = 33
SCL_PIN = 35
