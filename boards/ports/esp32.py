"""What all boards of the esp32 port share; `board` has the constants of one of them."""

import machine
import onchip
from onchip import *

WATCHDOG_MS = 30000
_LABEL = "journal"


def sensors():
    """What the board measures with -> list of sensors."""
    import esp32

    from sensors.internal import Esp32Temperature

    if hasattr(esp32, "mcu_temperature") or hasattr(esp32, "raw_temperature"):
        return onchip.usual_sensors(Esp32Temperature())
    return onchip.usual_sensors()


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


def journal_area():
    """The journal's own data partition -> block device; MQTTError if the flash has none."""
    from esp32 import Partition

    found = Partition.find(Partition.TYPE_DATA, label=_LABEL)
    if not found:
        raise onchip.journal_is_missing("no partition named journal: flash a file of `make image`")
    return found[0]


def sleep(milliseconds):
    """Switch nearly all off for so long; the board wakes by a reset."""
    machine.deepsleep(milliseconds)
