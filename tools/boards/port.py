"""The serial port of a board: why it cannot be used, in one line.

Checked before any tool opens it, so that mpremote's and esptool's own messages,
which differ per tool, are the exception.
"""

import errno
import fcntl
import os
import termios

from .errors import BoardError


def check_port(port):
    """Raise BoardError if `port` is missing, not readable, busy, or no serial port."""
    try:
        fd = os.open(port, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        raise BoardError(f"{port}: {_reason(error)}") from None
    try:
        termios.tcgetattr(fd)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Not left to close(): a child that another thread forks just now has a copy.
        fcntl.flock(fd, fcntl.LOCK_UN)
    except termios.error:
        raise BoardError(f"{port}: not a serial port, as /dev/ttyUSB0 is") from None
    except OSError as error:
        raise BoardError(f"{port}: {_reason(error)}") from None
    finally:
        os.close(fd)


def _reason(error):
    if error.errno in (errno.ENOENT, errno.ENXIO, errno.ENODEV, errno.EIO):
        return "no such port; plug the board in and see `mpremote connect list`"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "no permission; add yourself to the group that owns it (dialout) and log in again"
    if error.errno in (errno.EBUSY, errno.EAGAIN):
        return "busy; close the other program that uses it"
    return f"{os.strerror(error.errno)}; check the cable"
