"""WIZnet W5100S-EVB-Pico, on its cable."""

from port import *

LED_PIN = 25
SDA_PIN = 4
SCL_PIN = 5
