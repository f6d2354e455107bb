"""ESP32-C5-DevKitC-1; its LED is an RGB chip, so there is no plain one."""

from port import *

SDA_PIN = 6
SCL_PIN = 7
