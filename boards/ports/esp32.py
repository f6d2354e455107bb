"""What all ESP32 boards share: the journal's partition and the reset."""

import machine

_LABEL = "journal"


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
