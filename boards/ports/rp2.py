"""What all boards of the rp2 port share; `board` has the constants of one of them."""

import time

import machine

# Says which blocks littlefs leaves alone; `make image` or `make deploy` wrote it.
_PLACE = "/journal/place"


def sensors():
    """What the board measures with -> list of sensors."""
    import board
    from sensors.health import FreeHeap, Signal
    from sensors.internal import RP2Temperature

    found = [RP2Temperature()]
    if board.NETWORK == "wifi":
        found.append(Signal())
    found.append(FreeHeap())
    return found


def i2c():
    """The bus for sensors that you connect -> machine.I2C."""
    import board

    return machine.I2C(0, sda=machine.Pin(board.SDA_PIN), scl=machine.Pin(board.SCL_PIN))


def ethernet():
    """The cable of a board with a WIZnet chip; its firmware knows the pins."""
    import network

    return network.WIZNET5K()


def journal():
    """The journal in the blocks kept for it; MQTTError if none are."""
    from umqtt31 import Journal

    return Journal(journal_area())


def journal_area():
    """Where the journal lies -> block device; MQTTError if there is none."""
    import rp2

    try:
        with open(_PLACE) as file:
            start, length = map(int, file.read().split())
    except (OSError, ValueError):
        # Not at the top: imports within imports cost stack, of which there is little.
        from umqtt31 import JOURNAL, MQTTError

        raise MQTTError(JOURNAL, "no blocks kept for the journal: run `make deploy`")
    return rp2.Flash(start=start, len=length)


def reset():
    """Reset the board."""
    machine.reset()


def reset_cause():
    """Why the board started: 1 power, 2 reset, 3 watchdog, 4 deep sleep, 5 soft reset."""
    return machine.reset_cause()


def sleep(milliseconds):
    """Switch nearly all off for so long; the board wakes by a reset."""
    machine.deepsleep(milliseconds)


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
