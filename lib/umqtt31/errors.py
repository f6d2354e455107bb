"""MQTTError: one exception for everything that is not a caller's slip.

Bad arguments raise ValueError or TypeError before anything is sent or stored;
all else is an MQTTError, which is an OSError, so that code written for other
clients, which catches OSError to reconnect, goes on working.
"""


class MQTTError(OSError):
    """`code`: one of the numbers in `codes`, or the broker's return code 6 to 255.
    `errno`: the system's number, if it was the system that failed, else None."""

    def __init__(self, code, text=None, errno=None):
        if not text:
            try:
                from .codes import text_of

                text = text_of(code)
            except MemoryError:
                text = "error %d" % code
        if errno is None:
            super().__init__(text)
        else:
            super().__init__(errno, text)
        self.errno = errno
        self.code = code

    def __str__(self):
        # Else MicroPython shows a broker's 5 as the system's EIO.
        return str(self.args[-1])


def number_of(error):
    """-> the system's number of an OSError, None if there is none."""
    args = error.args
    return args[0] if args and isinstance(error, OSError) and isinstance(args[0], int) else None


def __getattr__(name):
    """The codes by name: CLOSED, FULL …, see `codes`."""
    # "from . import codes" would ask the package for the name, which asks here.
    from .codes import NAMES

    if name in NAMES:
        return NAMES[name]
    raise AttributeError(name)
