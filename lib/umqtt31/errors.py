"""MQTTError and its codes: one exception for everything that is not a caller's slip.

Bad arguments raise ValueError or TypeError before anything is sent or stored;
all else is an MQTTError, which is an OSError, so that code written for other
clients, which catches OSError to reconnect, goes on working.
"""

# 1 to 255 are the broker's own words: the return code of CONNACK (MQTT 3.1 §3.2).
REFUSED_VERSION = 1
REFUSED_CLIENT_ID = 2
REFUSED_UNAVAILABLE = 3
REFUSED_CREDENTIALS = 4
REFUSED_NOT_AUTHORIZED = 5

NETWORK = 256
TIMEOUT = 257
CLOSED = 258
PROTOCOL = 259
TOO_LARGE = 260
FULL = 261
JOURNAL = 262
BUSY = 263
AWAITING_REL = 264


class MQTTError(OSError):
    """`code`: one of this module's numbers, or the broker's return code 6 to 255."""

    def __init__(self, code, text=None):
        if not text:
            text = "error %d of the connection or the broker" % code
            try:
                # Only loaded when something goes wrong: a good day needs no texts.
                from .texts import TEXTS

                text = TEXTS.get(code, text)
            except MemoryError:
                pass
        super().__init__(code, text)
        self.code = code
