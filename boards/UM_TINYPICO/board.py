"""TinyPICO; its LED is an RGB chip, so there is no plain one."""

from port import *

NAME = "UM_TINYPICO"
NETWORK = "wifi"
LED_PIN = None
LED_ON = 1
WATCHDOG_MS = 30000
SDA_PIN = 21
SCL_PIN = 22
