"""Starts the sensor node; MicroPython runs this file after boot.py."""

import update


def _run():
    import board
    from start import start

    start(board)


update.guard(_run)
