"""Seeed XIAO ESP32C6; its LED is lit by 0."""

from port import *

NAME = "SEEED_XIAO_ESP32C6"
NETWORK = "wifi"
LED_PIN = 15
LED_ON = 0
WATCHDOG_MS = 30000
SDA_PIN = 22
SCL_PIN = 23
