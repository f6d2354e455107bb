"""Seeed XIAO ESP32S3; its LED is lit by 0."""

from port import *

LED_PIN = 21
LED_ON = 0
SDA_PIN = 5
SCL_PIN = 6
