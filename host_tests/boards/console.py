"""Reads what a virtual board prints: up to a line that a test waits for, or all of it."""

import contextlib
import threading
import time

from host_tests.patience import SECONDS
from tools.boards.monitor import monitor


def read_until(port, text, restart=False, act=None):
    """What the board at `port` prints, up to and with `text`; fails when that does not come.

    `act` is called when the port is open: what the board printed before is lost, as opening
    a serial port drops what came.
    """
    got = bytearray()
    limit = time.monotonic() + SECONDS

    def has_seen():
        nonlocal act
        if act:
            act, now = None, act
            now()
        assert time.monotonic() < limit, f"no {text!r} in {bytes(got)!r}"
        return text.encode() in got

    monitor(port, restart, write=got.extend, until=has_seen)
    return got.decode()


@contextlib.contextmanager
def drained(*ports):
    """Meanwhile what boards print is read, as a person's monitor does; a full terminal holds
    a board up."""
    stop = threading.Event()
    readers = [
        threading.Thread(target=monitor, args=(port, False, lambda data: None, stop.is_set))
        for port in ports
    ]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        stop.set()
        for reader in readers:
            reader.join()
