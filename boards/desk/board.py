"""The desk: MicroPython's unix port in place of a board, the current folder as flash."""

from port import *

NAME = "desk"
NETWORK = "host"  # the computer's own
WATCHDOG_MS = None
SDA_PIN = None
SCL_PIN = None
