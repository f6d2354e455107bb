"""When the next sample is due: on schedule without drift, whatever comes in between."""

SHORTEST_MS = 10
LONGEST_MS = 86400000


class Schedule:
    """The first sample is due at once; `clock` as in node.Node."""

    def __init__(self, clock, interval_ms):
        self._clock = clock
        self._next = clock.ticks_ms()
        self.interval_ms = interval_ms

    def is_due(self):
        """Is it time?  Then the next one follows an interval after this one was due."""
        if self._next is None:
            return False
        late_ms = self._clock.ticks_diff(self._clock.ticks_ms(), self._next)
        if late_ms < 0:
            return False
        # Samples that were missed are not made up for.
        skipped = late_ms // self.interval_ms
        self._next = self._clock.ticks_add(self._next, (skipped + 1) * self.interval_ms)
        return True

    def left_ms(self, most_ms):
        """How long it is to the next one, `most_ms` at most."""
        if self._next is None:
            return most_ms
        left_ms = self._clock.ticks_diff(self._next, self._clock.ticks_ms())
        return max(min(most_ms, left_ms), 0)

    def change(self, interval_ms):
        """Another interval, from now on."""
        self.interval_ms = interval_ms
        if self._next is not None:
            self._next = self._clock.ticks_add(self._clock.ticks_ms(), interval_ms)

    def stop(self):
        """No more samples."""
        self._next = None
