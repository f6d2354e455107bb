"""Starts the sensor node; MicroPython runs this file after boot.py.

While an update is on trial this is its guard, and so changes by cable only: whatever
happens below, a loop that never ends included, ends in a reset, and after a few of
them boot.py gets the old files back.
"""

import sys
import time

import update

_PAUSE_MS = 2000
_WATCHDOG_MS = 8300  # the longest of RP2040


def _watch():
    try:
        from machine import WDT

        WDT(timeout=_WATCHDOG_MS)
    except ImportError:
        pass  # the desk


def _reset():
    time.sleep_ms(_PAUSE_MS)
    try:
        from machine import reset
    except ImportError:
        sys.exit(0)  # the desk
    reset()


_is_on_trial = update.is_on_trial()
if _is_on_trial:
    _watch()
try:
    import board
    from start import start

    start(board)
except Exception as error:
    if not _is_on_trial:
        raise
    sys.print_exception(error)
if _is_on_trial:
    _reset()
