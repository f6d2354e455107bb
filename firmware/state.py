"""What the node must remember over a reset: boot counter, interval, and what it slept on.

Kept as JSON in one small file, written beside and then renamed, so that a reset
at any moment leaves the old state or the new one.
"""

import json
import os
import random

FILE = "state.json"
# The journal has failed, and all that it held was sent.
DONE = "done"
# The journal works again, and the broker does not know it yet.
WELL = "well"

# A commanded interval is saved at once, but not more often than this.
_SAVE_EVERY_S = 60


class State:
    """`boot`: the number of this start, from 1.  `interval_ms`: None until commanded.

    `asleep`: what the node handed over to itself before a deep sleep, else None.
    `journal`: what is known of its failure, None once it is over and told.
    `commanded`: the number of the last signed command, 0 before the first.
    """

    def __init__(self, path=FILE):
        self._path = path
        known = _read(path) or {}
        self.boot = self._counted = known.get("boot", 0)
        self.interval_ms = known.get("interval_ms")
        self.asleep = known.get("asleep")
        if self.asleep:
            self.boot = self.asleep.get("boot", self.boot)
        self.journal = known.get("journal")
        self.commanded = known.get("commanded", 0)
        self._is_unsaved = False
        self._saved_at_s = -_SAVE_EVERY_S

    def begin_boot(self):
        """Count this start; on flash when it returns, so no number is used twice.

        Raises OSError when flash takes no number: then it is one at random that no
        counter reaches.
        """
        self._counted += 1
        self.boot = self._counted
        self.asleep = None
        try:
            self.save()
        except OSError:
            self._counted -= 1
            self.boot = 1 << 31 | random.getrandbits(31)
            raise

    def change_interval(self, interval_ms):
        """Keep a commanded interval; save_when_due() brings it to flash."""
        self.interval_ms = interval_ms
        self._is_unsaved = True

    def keep_journal(self, journal):
        self.journal = journal
        self._is_unsaved = True

    def save_when_due(self, uptime_s):
        """Write what waits, if the last such writing is long enough ago.  Raises OSError."""
        if self._is_unsaved and uptime_s - self._saved_at_s >= _SAVE_EVERY_S:
            self._saved_at_s = uptime_s
            self.save()

    def fall_asleep(self, asleep):
        """Keep `asleep`, a dict of numbers and lists, for the same boot after the sleep."""
        asleep["boot"] = self.boot  # a random number if flash took no count
        self.asleep = asleep
        self.save()

    def save(self):
        """Write the state.  Raises OSError when the filesystem is full or broken."""
        beside = self._path + ".new"
        with open(beside, "w") as file:
            known = {"boot": self._counted, "interval_ms": self.interval_ms}
            if self.asleep:
                known["asleep"] = self.asleep
            if self.commanded:
                known["commanded"] = self.commanded
            if self.journal:
                known["journal"] = self.journal
            json.dump(known, file)
        os.rename(beside, self._path)
        self._is_unsaved = False


def _read(path):
    try:
        with open(path) as file:
            known = json.load(file)
    except (OSError, ValueError):
        return None
    return known if isinstance(known, dict) else None
