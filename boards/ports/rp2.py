"""What all boards of the rp2 port share; `board` has the constants of one of them.

A reset by machine.reset(), the watchdog, and the end of a deep sleep are one and the same
to the chip.  So reset() and sleep() leave word in a register that only a power cut clears.
"""

import sys
import time

import machine
import onchip
from onchip import *

WATCHDOG_MS = 8300  # the longest that RP2040 has
# Says which blocks littlefs leaves alone; `make image` or `make deploy` wrote it.
_PLACE = "/journal/place"
# SCRATCH0 of the watchdog; SDK and boot ROM use those from 2 on.
_SCRATCH_RP2040 = 0x4005800C
_SCRATCH_RP2350 = 0x400D800C
_WORD = 0x31B00000  # + a reset cause
_BY_RESET = 2
_BY_SLEEP = 4
# Less than a watchdog's time: it cannot be stopped, and counts during a sleep.
_NAP_MS = 5000


def sensors():
    """What the board measures with -> list of sensors."""
    from sensors.internal import RP2Temperature

    return onchip.usual_sensors(RP2Temperature())


def ethernet():
    """The cable of a board with a WIZnet chip; its firmware knows the pins."""
    import network

    return network.WIZNET5K()


def journal_area():
    """The blocks kept for the journal -> block device; MQTTError if none are."""
    import rp2

    try:
        with open(_PLACE) as file:
            start, length = map(int, file.read().split())
    except (OSError, ValueError):
        raise onchip.journal_is_missing("no blocks kept for the journal: run `make deploy`")
    return rp2.Flash(start=start, len=length)


def reset():
    _reset_by(_BY_RESET)


def reset_cause():
    """Why the board started: 1 power, 2 reset, 3 watchdog, 4 deep sleep; once a start."""
    word = machine.mem32[_scratch()]
    machine.mem32[_scratch()] = 0
    for cause in (_BY_RESET, _BY_SLEEP):
        if word == _WORD + cause:
            return cause
    return machine.reset_cause()


def sleep(milliseconds):
    """Switch nearly all off for so long; the board wakes by a reset."""
    # machine.deepsleep() leaves the radio on, and the watchdog ends it.
    import board

    if board.NETWORK == "wifi":
        import network

        network.WLAN(network.STA_IF).deinit()
    end = time.ticks_add(time.ticks_ms(), milliseconds)
    left_ms = milliseconds
    while left_ms > 0:
        if board.WATCHDOG_MS:
            machine.WDT(timeout=board.WATCHDOG_MS)  # starts its time anew
        machine.lightsleep(min(left_ms, _NAP_MS))
        left_ms = time.ticks_diff(end, time.ticks_ms())
    _reset_by(_BY_SLEEP)


def _reset_by(cause):
    machine.mem32[_scratch()] = _WORD + cause
    machine.reset()


def _scratch():
    return _SCRATCH_RP2350 if "RP2350" in sys.implementation._machine else _SCRATCH_RP2040
