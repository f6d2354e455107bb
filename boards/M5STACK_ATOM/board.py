"""M5Stack Atom; its LEDs are RGB chips, so there is no plain one."""

from port import *

NAME = "M5STACK_ATOM"
SDA_PIN = 25
SCL_PIN = 21
