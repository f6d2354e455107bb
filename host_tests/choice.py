"""Which class of clients a test needs; runs under CPython and under MicroPython."""

import umqtt31

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
