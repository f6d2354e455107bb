"""What all boards of the esp32 port share; `board` has the constants of one of them."""

import time

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


def ethernet():
    """The cable of a board whose ETHERNET says how its chip is wired -> network.LAN."""
    import network

    import board

    options = dict(board.ETHERNET)
    kind = getattr(network, options.pop("phy_type"))
    if "spi" in options:
        pins = {name: machine.Pin(options.pop(name)) for name in ("sck", "mosi", "miso")}
        options["spi"] = machine.SPI(options["spi"], **pins)
    if "ref_clk_mode" in options:
        options["ref_clk_mode"] = getattr(machine.Pin, options["ref_clk_mode"])
    for name in ("mdc", "mdio", "reset", "power", "ref_clk", "cs", "int"):
        if name in options:
            options[name] = machine.Pin(options[name])
    return network.LAN(phy_type=kind, **options)


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
