"""Starts the sensor node; MicroPython runs this file after boot.py."""

import board
from start import start

start(board)
