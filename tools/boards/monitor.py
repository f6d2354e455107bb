"""What a board prints, line by line, until the person stops it or the port is gone."""

import sys
import termios

import serial

from .errors import BoardError
from .port import check_port
from .remote import Remote

_CHUNK = 1024


def monitor(port, restart=False, write=None, until=lambda: False):
    """Hand what the board prints to `write` (default: stdout, unbuffered) as it comes.

    `restart` resets the board first, so that nothing of its start is missed;
    `until` is asked between two reads whether to stop.  Raises BoardError when the
    port cannot be used or goes away.
    """
    check_port(port)
    write = write or _to_stdout
    try:
        with serial.Serial(port, 115200, timeout=0.2) as line:
            if restart:
                write(Remote.send_restart(line))
            while not until():
                data = line.read(max(1, min(line.in_waiting, _CHUNK)))
                if data:
                    write(data)
    except (serial.SerialException, OSError, termios.error):
        raise BoardError(f"{port}: the board is gone; plug it in and start again") from None


def _to_stdout(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
