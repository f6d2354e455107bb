"""Seeed XIAO ESP32C3; it has no LED for programs."""

from port import *

NAME = "SEEED_XIAO_ESP32C3"
SDA_PIN = 6
SCL_PIN = 7
