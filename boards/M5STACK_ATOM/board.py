"""M5Stack Atom; its LEDs are RGB chips, so there is no plain one."""

from port import *

NAME = "M5STACK_ATOM"
NETWORK = "wifi"
LED_PIN = None
LED_ON = 1
WATCHDOG_MS = 30000
SDA_PIN = 25
SCL_PIN = 21
