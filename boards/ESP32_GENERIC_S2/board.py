"""ESP32-S2-DevKitC-1 and Saola; their LED is an RGB chip, so there is no plain one."""

from port import *

SDA_PIN = 8
SCL_PIN = 9
