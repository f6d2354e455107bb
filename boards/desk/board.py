"""The desk: MicroPython's unix port in place of a board, the current folder as flash."""

from port import *

WATCHDOG_MS = None
SDA_PIN = None
SCL_PIN = None
