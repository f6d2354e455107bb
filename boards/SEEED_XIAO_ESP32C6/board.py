"""Seeed XIAO ESP32C6; its LED is lit by 0."""

from port import *

LED_PIN = 15
LED_ON = 0
SDA_PIN = 22
SCL_PIN = 23
