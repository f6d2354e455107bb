"""M5Stack Atom; its LEDs are RGB chips, so there is no plain one."""

from port import *

SDA_PIN = 25
SCL_PIN = 21
