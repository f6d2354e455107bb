"""ESP32 DevKitC and its many relatives; their LED is usually on GPIO 2."""

from port import *

NAME = "ESP32_GENERIC"
NETWORK = "wifi"
LED_PIN = 2
LED_ON = 1
WATCHDOG_MS = 30000
SDA_PIN = 19
SCL_PIN = 18
