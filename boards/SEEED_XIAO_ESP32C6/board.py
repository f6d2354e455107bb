"""Seeed XIAO ESP32C6; its LED is lit by 0."""

from port import *

NAME = "SEEED_XIAO_ESP32C6"
LED_PIN = 15
LED_ON = 0
SDA_PIN = 22
SCL_PIN = 23
