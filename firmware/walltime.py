"""What time it is: seconds since 1970, counted on from the moment somebody said it.

In two halves of 16 bits: the whole number is too large for the small integers of a
32-bit port, so that it would allocate.  All zeros: nobody has said it yet.
"""

EARLIEST_S = 1735689600  # 2025-01-01: what is earlier is no time
LATEST_S = 0xFFFFFFFF  # 2106: what is later does not fit into a reading


class WallTime:
    """`high` and `low` are those of the last `read()`."""

    def __init__(self):
        self._base_high = self._base_low = 0  # at uptime 0
        self.high = self.low = 0

    @property
    def is_known(self):
        """Has somebody said the time?"""
        return bool(self._base_high)

    @property
    def start_s(self):
        """What it was at uptime 0, or 0 while nobody has said it; allocates."""
        return self._base_high << 16 | self._base_low

    def set(self, seconds, uptime_s):
        """It is `seconds` since 1970 now; allocates."""
        base = seconds - uptime_s
        self._base_high = base >> 16
        self._base_low = base & 0xFFFF

    def read(self, uptime_s):
        """Bring `high` and `low` up to `uptime_s`, without allocating."""
        if self._base_high:
            low = self._base_low + (uptime_s & 0xFFFF)
            self.high = self._base_high + (uptime_s >> 16) + (low >> 16)
            self.low = low & 0xFFFF
