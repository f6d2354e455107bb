"""Reads what a virtual board prints, up to a line that a test waits for."""

import time

from tools.boards.monitor import monitor


def read_until(port, text, restart=False, seconds=20, patience_s=10):
    """What the board at `port` prints, up to and with `text`; fails after `seconds`."""
    got = bytearray()
    limit = time.monotonic() + seconds

    def has_seen():
        assert time.monotonic() < limit, f"no {text!r} in {bytes(got)!r}"
        return text.encode() in got

    monitor(port, restart, write=got.extend, until=has_seen, patience_s=patience_s)
    return got.decode()
