"""What all boards of the rp2 port share; `board` has the constants of one of them."""

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


def halt():
    """Leave the message on the screen: main.py ends and the REPL comes."""
