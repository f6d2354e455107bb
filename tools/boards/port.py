"""The serial port of a board, through pyserial: why it cannot be used, in one line.

Checked before any tool opens it, so that mpremote's and esptool's own messages,
which differ per tool, are the exception.  Works where pyserial does; errors are told
by their numbers, on Windows by the words that pyserial has.
"""

import contextlib
import errno
import os
import re
import time

import serial
from serial.tools import list_ports

from .errors import BoardError

_TRIES = 20
_BUSY_PAUSE_S = 0.05
_LOST = (errno.ENOENT, errno.ENXIO, errno.ENODEV, errno.EIO)
_NUMBER = re.compile(r"\((\d+),|\[Errno (\d+)\]")


def check_port(port):
    """Raise BoardError if `port` is missing, not readable, busy, or no serial port."""
    with told_errors(port):
        open_port(port, timeout=0).close()


def open_port(port, timeout):
    """`port` as a serial.Serial that nobody else has; `timeout` in seconds for reads."""
    if os.path.isdir(port):
        raise BoardError(f"{port}: a folder; name a serial port, as /dev/ttyUSB0 is")
    for _ in range(_TRIES):
        try:
            return serial.Serial(port, 115200, timeout=timeout, exclusive=True)
        except serial.SerialException as error:
            if not _is_busy(error):
                raise
        # The program that has the port, or a child forked meanwhile, may be about to end.
        time.sleep(_BUSY_PAUSE_S)
    return serial.Serial(port, 115200, timeout=timeout, exclusive=True)


@contextlib.contextmanager
def told_errors(port, gone=None):
    """Turn what pyserial raises into BoardError.

    `gone`: the text for any failure of a port that worked before.
    """
    try:
        yield
    except BoardError:
        raise
    except Exception as error:
        if not is_port_error(error):
            raise
        raise BoardError(f"{port}: {gone or _reason(error)}") from None


def is_port_error(error):
    """Does `error` come from a port?  On POSIX pyserial lets termios.error through."""
    return isinstance(error, OSError) or type(error).__module__ == "termios"


def _is_busy(error):
    return "lock port" in str(error) or (os.name == "nt" and "PermissionError" in str(error))


def _reason(error):
    # SerialException is an OSError; pyserial does not always pass the number on.
    text = str(error)
    found = _NUMBER.search(text)
    number = error.errno or (found and int(found[1] or found[2]))
    if "FileNotFoundError" in text or number in _LOST:
        return _no_such_port()
    if _is_busy(error) or number in (errno.EBUSY, errno.EAGAIN):
        return "busy; close the other program that uses it"
    if number in (errno.EACCES, errno.EPERM):
        return "no permission; add yourself to the group that owns it (dialout) and log in again"
    if number in (errno.ENOTTY, errno.EINVAL) or "configure port" in text:
        return "not a serial port, as /dev/ttyUSB0 is"
    return f"{os.strerror(number) if number else text}; check the cable"


def _no_such_port():
    # Only ports with a USB number: a computer's own serial lines are no boards.
    found = [one.device for one in list_ports.comports() if one.vid is not None]
    if found:
        return f"no such port; there are: {', '.join(sorted(found))}"
    return "no such port, nor one of any board; plug it in, with a cable that carries data"
