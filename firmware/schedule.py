"""When the next sample is due, and when and for how long a node may sleep in between.

On schedule without drift, whatever comes in between.  With a long interval the node sends what
waits, as the settings say, then listens a moment for commands that the broker kept.  Where
there is no way to the broker it sleeps at once: the journal keeps what it has.
"""

SHORTEST_MS = 10
LONGEST_MS = 86400000
_COMMANDS_MS = 250


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
        # Missed samples are not taken later.
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
        self.interval_ms = interval_ms
        if self._next is not None:
            self._next = self._clock.ticks_add(self._clock.ticks_ms(), interval_ms)

    def stop(self):
        self._next = None


class Sleep:
    """`config` is a dict of settings.KEYS, `clock` as in node.Node, `room` how many
    messages the client takes; `was_asleep`: it woke, and has nothing else to tell."""

    def __init__(self, config, clock, room, was_asleep):
        self._above_ms = config["sleep_above_ms"]
        self._awake_ms = config["awake_ms"]
        self._must_send = config["sleep_after"] == "acknowledged" or not was_asleep
        self._room = room
        self._clock = clock
        self._start = self._quiet_at = None

    def is_wanted(self, interval_ms):
        """Is the interval long enough to sleep in between?"""
        return 0 < self._above_ms <= interval_ms

    def begin(self):
        """The node is awake from now on."""
        self._start = self._clock.ticks_ms()
        self._quiet_at = None

    def is_over(self, is_connected, is_idle, has_failed, undelivered):
        """Is there a reason to stay awake no more?

        `is_idle`: connected, and nothing left to say; `has_failed`: network or broker
        said no.
        """
        now = self._clock.ticks_ms()
        if self._clock.ticks_diff(now, self._start) >= self._awake_ms:
            return True
        if not is_connected:
            # The radio stays off until half of the room is taken.
            return has_failed or not (self._must_send or 2 * undelivered >= self._room)
        if not is_idle:
            self._quiet_at = None
        elif self._quiet_at is None:
            self._quiet_at = now
        else:
            return self._clock.ticks_diff(now, self._quiet_at) >= _COMMANDS_MS
        return False

    def stay_awake(self):
        """Sleep no more until the next start."""
        self._above_ms = 0

    def send_all(self):
        """Nothing outlives a sleep any more: it is sent before."""
        self._must_send = True

    def wait_ms(self, most_ms):
        """How long one round may wait."""
        return most_ms if self._quiet_at is None else min(most_ms, _COMMANDS_MS)

    def left_ms(self, interval_ms):
        """How long to sleep, so that the next sample is an interval after this one."""
        passed_ms = self._clock.ticks_diff(self._clock.ticks_ms(), self._start)
        return max(interval_ms - passed_ms, 1)
