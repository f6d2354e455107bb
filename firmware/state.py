"""What the node must remember over a reset: its boot counter and sampling interval.

Kept as JSON in one small file, written beside and then renamed, so that a reset
at any moment leaves the old state or the new one.
"""

import json
import os

FILE = "state.json"


class State:
    """`boot`: the number of this start, from 1.  `interval_ms`: None until commanded."""

    def __init__(self, path=FILE):
        self._path = path
        known = _read(path) or {}
        self.boot = known.get("boot", 0)
        self.interval_ms = known.get("interval_ms")

    def begin_boot(self):
        """Count this start; on flash when it returns, so no number is used twice."""
        self.boot += 1
        self.save()

    def save(self):
        """Write the state.  Raises OSError when the filesystem is full or broken."""
        beside = self._path + ".new"
        with open(beside, "w") as file:
            json.dump({"boot": self.boot, "interval_ms": self.interval_ms}, file)
        os.rename(beside, self._path)


def _read(path):
    try:
        with open(path) as file:
            known = json.load(file)
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) else None
