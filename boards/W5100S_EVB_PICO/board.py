"""WIZnet W5100S-EVB-Pico, on its cable."""

from port import *

NAME = "W5100S_EVB_PICO"
NETWORK = "ethernet"
LED_PIN = 25
SDA_PIN = 4
SCL_PIN = 5
