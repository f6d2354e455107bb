"""ESP8684-DevKitM-1; its LED is an RGB chip, so there is no plain one."""

from port import *

SDA_PIN = 4
SCL_PIN = 5
