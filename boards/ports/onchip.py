"""What boards with a chip of their own share, whatever its port: sensors, bus, clock, reset.

`port` takes it over; a function that a port has itself takes the place of one here.
"""

import time

import machine

# What a board.py may leave out.
LED_PIN = None
LED_ON = 1


def usual_sensors(*inside):
    """The sensors in the chip, and what every board can tell of itself -> list of sensors."""
    import board
    from sensors.internal import FreeHeap, Signal

    found = list(inside)
    if board.NETWORK == "wifi":
        found.append(Signal())
    found.append(FreeHeap())
    return found


def i2c():
    """The bus for sensors that you connect -> machine.I2C."""
    import board

    return machine.I2C(0, sda=machine.Pin(board.SDA_PIN), scl=machine.Pin(board.SCL_PIN))


def journal():
    """The journal where journal_area() has its place -> store for MQTTClient.  MQTTError."""
    import board
    from umqtt31 import Journal

    return Journal(board.journal_area())


def journal_is_missing(why):
    """-> the error of a board without a place for its journal."""
    # Not at the top: imports within imports cost stack, of which there is little.
    from umqtt31 import JOURNAL, MQTTError

    return MQTTError(JOURNAL, why)


def reset():
    machine.reset()


def reset_cause():
    """Why the board started: 1 power, 2 reset, 3 watchdog, 4 deep sleep, 5 soft reset."""
    return machine.reset_cause()


def now():
    """Seconds since 1970, or 0 while nobody has set the clock."""
    # Without a battery it begins at 2000 or 2021, as the port has it.
    return int(time.time()) + _epoch() if time.gmtime()[0] >= 2025 else 0


def set_clock(seconds):
    """Set the board's clock to `seconds` since 1970 (UTC)."""
    year, month, day, hour, minute, second, weekday = time.gmtime(seconds - _epoch())[:7]
    machine.RTC().datetime((year, month, day, weekday, hour, minute, second, 0))


def _epoch():
    # MicroPython counts from 1970 or from 2000.
    return 0 if time.gmtime(0)[0] == 1970 else 946684800


def halt():
    """Leave the message on the screen: main.py ends and the REPL comes."""
