"""Seeed XIAO ESP32C3; it has no LED for programs."""

from port import *

SDA_PIN = 6
SCL_PIN = 7
