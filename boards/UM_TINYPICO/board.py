"""TinyPICO; its LED is an RGB chip, so there is no plain one."""

from port import *

SDA_PIN = 21
SCL_PIN = 22
