"""Seeed XIAO ESP32S3; its LED is lit by 0."""

from port import *

NAME = "SEEED_XIAO_ESP32S3"
LED_PIN = 21
LED_ON = 0
SDA_PIN = 5
SCL_PIN = 6
