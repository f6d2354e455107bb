"""Stand-ins for what the sensor node asks of a chip beside its flash.

Runs inside MicroPython.  The Wi-Fi is the computer's own network, joined by
whatever name; it is 27 °C inside the chip; the watchdog does not bite.  A light sleep
takes its time, a deep sleep none.
"""

import sys
import time
from collections import namedtuple

import wlan

# What the diode of an RP2 shows at 27 °C: 706 mV of 3.3 V in 65536 steps.
_CORE_27_C = 14020
_RSSI_DBM = -50


# Status of the process by which a deep sleep ends; the computer's side starts it again.
DEEP_SLEEP = 82


class _Pin:
    OUT = 1
    IN = 0

    def __init__(self, name, mode=None):
        self._level = 0

    def value(self, level=None):
        if level is None:
            return self._level
        self._level = level


class _ADC:
    CORE_TEMP = 4

    def __init__(self, channel):
        pass

    def read_u16(self):
        return _CORE_27_C


class _Idle:
    # A watchdog, a clock that is right already, or a bus: what is asked of it changes nothing.
    def __init__(self, *args, **options):
        pass

    feed = datetime = __init__


class _WLAN(wlan.WLAN):
    def __init__(self, interface):
        super().__init__(interface)
        self.is_in_reach, self.dbm = True, _RSSI_DBM

    def disconnect(self):
        self.is_up = False

    deinit = disconnect

    def ifconfig(self):
        return "127.0.0.1", "255.0.0.0", "127.0.0.1", "127.0.0.1"


class _Cable(_WLAN):
    def __init__(self, **options):
        super().__init__(wlan.STA_IF)

    def active(self, is_active):
        self.is_up = is_active


class _Registers:
    # Of an RP2: they keep what is written over every reset but a power cut, in a file
    # beside the flash image.
    def __init__(self, path, is_kept):
        self._values = {}
        if is_kept:
            try:
                with open(path) as file:
                    self._values = dict(tuple(map(int, line.split())) for line in file)
            except OSError:
                pass
        # Opened at once: behind the board's own "/" it is out of reach.
        self._file = open(path, "w")
        self._keep()

    def __getitem__(self, address):
        return self._values.get(address, 0)

    def __setitem__(self, address, value):
        self._values[address] = value
        self._keep()

    def _keep(self):
        self._file.seek(0)
        for address, value in self._values.items():
            self._file.write("%10d %10d\n" % (address, value))
        self._file.flush()


def _deepsleep(milliseconds):
    print("deep sleep", milliseconds)
    sys.exit(DEEP_SLEEP)


class _Machine:
    ADC = _ADC
    Pin = _Pin
    WDT = RTC = SPI = _Idle
    deepsleep = _deepsleep
    lightsleep = time.sleep_ms
    cause = 1
    # The first program of a board that ends so is started again.
    reset = sys.exit


_Machine.reset_cause = lambda: _Machine.cause


class _Network:
    STA_IF = wlan.STA_IF
    PHY_W5500 = 1
    PHY_LAN8720 = 2
    PHY_IP101 = 3
    WLAN = _WLAN
    LAN = _Cable
    WIZNET5K = _Cable


class _Sys:
    # The port's own module, but for what it says of the machine.
    implementation = sys.implementation

    def __getattr__(self, name):
        return getattr(sys, name)


def name_board(machine):
    """Let sys.implementation name `machine`, as MicroPython on a board does."""
    about = sys.implementation
    kind = namedtuple("implementation", ("name", "version", "_machine", "_mpy"))
    _Sys.implementation = kind(about.name, about.version, machine, about._mpy)
    sys.modules["sys"] = _Sys()


_POWER_ON = 1
_WATCHDOG = 3


def install(mcu, cause, image):
    """Put the modules in place; the chip's own one of `mcu` has to be there already.

    `cause`: why the board starts, as machine.reset_cause() of esp32 has it; beside `image`
    lies what outlives a reset.
    """
    _Machine.cause = cause
    if mcu[:2] == "rp":
        # This port knows two, and every reset is one by the watchdog.
        _Machine.cause = min(cause, _WATCHDOG)
        _Machine.mem32 = _Registers(image + ".registers", cause != _POWER_ON)
    sys.modules["machine"] = _Machine
    sys.modules["network"] = _Network
    if mcu == "esp32":
        sys.modules["esp32"].raw_temperature = lambda: 80
    elif mcu[:3] == "esp":
        sys.modules["esp32"].mcu_temperature = lambda: 27
