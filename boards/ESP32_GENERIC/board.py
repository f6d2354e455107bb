"""ESP32 DevKitC and its many relatives; their LED is usually on GPIO 2."""

from port import *

LED_PIN = 2
SDA_PIN = 19
SCL_PIN = 18
