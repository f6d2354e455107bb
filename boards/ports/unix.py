"""What the desk has in place of a chip: files, and a process that ends as a reset."""

import time

LED_PIN = None
_JOURNAL_FILE = "journal.img"
_JOURNAL_BLOCKS = 16
_BLOCK_BYTES = 4096


class HostNetwork:
    """The network of the system below, with the face of wifi.WiFi."""

    why = None

    def is_up(self):
        """Always True: whether the broker can be reached is the client's question."""
        return True

    def rssi(self):
        return None

    def find_dns(self):
        """None: the system looks names up."""
        return None


def sensors():
    """What the desk measures with -> list of sensors."""
    from sensors.internal import FreeHeap
    from sensors.simulated import Simulated

    return [Simulated(), FreeHeap()]


def journal():
    """The place for messages that survive a reset -> store for MQTTClient."""
    from umqtt31 import Journal

    return Journal(journal_area())


def journal_area():
    """Where the journal lies -> block device."""
    from umqtt31 import FileBlockDevice

    return FileBlockDevice(_JOURNAL_FILE, _JOURNAL_BLOCKS, _BLOCK_BYTES)


def reset():
    """A reset ends the process; what started it starts it again."""
    raise SystemExit(0)


def reset_cause():
    return 0


def sleep(milliseconds):
    """A deep sleep ends the process, too; waiting is up to what started it."""
    raise SystemExit(0)


def now():
    """Seconds since 1970."""
    return int(time.time())


def set_clock(seconds):
    """The computer's clock is right."""


def halt():
    """The node cannot start: end with the exit status for wrong use."""
    raise SystemExit(2)
