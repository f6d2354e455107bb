"""What all ESP32 boards share: the journal's partition and the reset."""

import machine

from umqtt31.errors import JOURNAL, MQTTError

_LABEL = "journal"


def journal():
    """The journal on its own data partition; MQTTError if the flash has none."""
    from esp32 import Partition

    from umqtt31 import Journal

    found = Partition.find(Partition.TYPE_DATA, label=_LABEL)
    if not found:
        raise MQTTError(JOURNAL, "no partition named journal: flash a file of `make image`")
    return Journal(found[0])


def reset():
    """Reset the board."""
    machine.reset()


def halt():
    """Leave the message on the screen: main.py ends and the REPL comes."""
