"""What all boards of the esp32 port share; `board` has the constants of one of them."""

import machine

_LABEL = "journal"


def sensors():
    """What the board measures with -> list of sensors."""
    import esp32

    import board
    from sensors.health import FreeHeap, Signal
    from sensors.internal import Esp32Temperature

    found = []
    if hasattr(esp32, "mcu_temperature") or hasattr(esp32, "raw_temperature"):
        found.append(Esp32Temperature())
    if board.NETWORK == "wifi":
        found.append(Signal())
    found.append(FreeHeap())
    return found


def i2c():
    """The bus for sensors that you connect -> machine.I2C."""
    import board

    return machine.I2C(0, sda=machine.Pin(board.SDA_PIN), scl=machine.Pin(board.SCL_PIN))


def journal():
    """The journal on its own data partition; MQTTError if the flash has none."""
    from umqtt31 import Journal

    return Journal(journal_area())


def journal_area():
    """Where the journal lies -> block device; MQTTError if there is none."""
    from esp32 import Partition

    found = Partition.find(Partition.TYPE_DATA, label=_LABEL)
    if not found:
        # Not at the top: imports within imports cost stack, of which there is little.
        from umqtt31 import JOURNAL, MQTTError

        raise MQTTError(JOURNAL, "no partition named journal: flash a file of `make image`")
    return found[0]


def reset():
    """Reset the board."""
    machine.reset()


def halt():
    """Leave the message on the screen: main.py ends and the REPL comes."""
