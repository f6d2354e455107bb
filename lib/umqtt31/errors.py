"""MQTTError: one exception for everything that is not a caller's slip.

Bad arguments raise ValueError or TypeError before anything is sent or stored;
all else is an MQTTError, which is an OSError, so that code written for other
clients, which catches OSError to reconnect, goes on working.
"""


class MQTTError(OSError):
    """`code`: one of the numbers in `codes`, or the broker's return code 6 to 255."""

    def __init__(self, code, text=None):
        if not text:
            text = "error %d of the connection or the broker" % code
            try:
                from .codes import TEXTS

                text = TEXTS.get(code, text)
            except MemoryError:
                pass
        super().__init__(code, text)
        self.code = code


def __getattr__(name):
    """The codes by name: CLOSED, FULL …, see `codes`."""
    # "from . import codes" would ask the package for the name, which asks here.
    from .codes import __dict__ as codes

    if name in codes:
        return codes[name]
    raise AttributeError(name)
