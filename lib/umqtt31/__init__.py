"""umqtt31: an MQTT client in fixed memory that loses nothing over a reset.

    from umqtt31 import MQTTClient, MQTTError, Journal

`Journal` and `FileBlockDevice` are loaded when they are first asked for, so that
a program without a journal does not pay for it.
"""

import gc
import sys

__version__ = "0.1.0"

if sys.implementation.name == "cpython":
    from .cpython import install

    install()

# What loading a module leaves behind goes before the next one, so that all lie close
# together: a client then finds large blocks for its buffers, and functions their frames.
for name in ("protocol", "client"):
    __import__(name, globals(), None, (), 1)
    gc.collect()

from . import errors  # noqa: E402
from .client import MQTTClient  # noqa: E402
from .errors import MQTTError  # noqa: E402

if sys.implementation.name == "cpython":
    from .cpython import replace

    replace()


def __getattr__(name):
    """`Journal`, `FileBlockDevice`, the names of the error codes, and modules."""
    # "from . import x" would ask here again.
    if name == "Journal":
        from .journal import Journal as found
    elif name == "FileBlockDevice":
        from .fileblockdevice import FileBlockDevice as found
    else:
        try:
            return getattr(errors, name)
        except AttributeError:
            if name[0] == "_":
                raise
        # "from umqtt31 import aio": MicroPython asks here before it looks for a module.
        found = "umqtt31." + name
        try:
            __import__(found)
        except ImportError:
            raise AttributeError(name)
        found = sys.modules[found]
    return found
