"""MQTTError: one exception for everything that is not a caller's slip.

Bad arguments raise ValueError or TypeError before anything is sent or stored;
all else is an MQTTError, which is an OSError, so that code written for other
clients, which catches OSError to reconnect, goes on working.
"""


class MQTTError(OSError):
    """`code`: one of the numbers in `codes`, or the broker's return code 6 to 255."""

    def __init__(self, code, text=None):
        if not text:
            try:
                from .codes import text_of

                text = text_of(code)
            except MemoryError:
                text = "error %d" % code
        super().__init__(code, text)
        self.code = code


def __getattr__(name):
    """The codes by name: CLOSED, FULL …, see `codes`."""
    # "from . import codes" would ask the package for the name, which asks here.
    from .codes import NAMES

    if name in NAMES:
        return NAMES[name]
    raise AttributeError(name)
