"""ESP32-C3 modules; on the many small ones the LED is on GPIO 8 and lit by 0."""

from port import *

LED_PIN = 8
LED_ON = 0
SDA_PIN = 4
SCL_PIN = 5
