"""ESP32-S3-DevKitC-1; its LED is an RGB chip, so there is no plain one."""

from port import *

SDA_PIN = 8
SCL_PIN = 9
