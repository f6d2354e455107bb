"""What of the library a test needs; runs under CPython and under MicroPython."""

import sys

import umqtt31

_OPTIONS = "aio alias errors fileblockdevice handshake journal opening properties queueing reasons"
_OPTIONS += " robust simple sock sslparams tls v5 wifi"
_NAMES = ["umqtt31"] + ["umqtt31." + one for one in _OPTIONS.split()]
_OF_QUEUEING = ("overflow", "mqueue_store_qos0", "ordered")


def class_for(level, options, is_queueing=False):
    """-> the MQTTClient of the core, or of the options that the level and the arguments need;
    `is_queueing`: the test uses `max_age` or `on_drop`, too."""
    make = umqtt31.MQTTClient
    if level > 4:
        from umqtt31 import v5

        make = v5.MQTTClient
    if is_queueing or [one for one in _OF_QUEUEING if one in options]:
        from umqtt31 import queueing

        make = queueing.MQTTClient if level < 5 else queueing.extend(make)
    return make


def loaded_modules():
    """-> those of the library that are loaded now."""
    return [sys.modules[one] for one in _NAMES if one in sys.modules]


def modules_with(name):
    """-> those of them that have a global of that name."""
    return [module for module in loaded_modules() if name in module.__dict__]


def turn(clock):
    """Let the library look at this clock."""
    for name in ("ticks_ms", "ticks_add", "ticks_diff", "sleep_ms"):
        for module in modules_with(name):
            if name != "sleep_ms" or module.__name__ != "umqtt31.aio":  # asyncio's own
                setattr(module, name, getattr(clock, name))
    for module in modules_with("time"):
        module.time = clock
