"""Counts the seconds since the boot, and knows what time it is once somebody said so.

Counts on over deep sleeps.  Asks an NTP server in the background where there is one, and
hears what somebody publishes.
"""

from walltime import EARLIEST_S, LATEST_S, WallTime

_DIGITS = 10


class Timekeeper:
    """`clock` as in node.Node; `ntp` an ntp.NTP or None; `now_s` the time, seconds since
    1970, or 0 if the board does not know; `set_clock(seconds)` hears it, or None."""

    def __init__(self, clock, ntp=None, now_s=0, set_clock=None):
        self._clock = clock
        self._ntp = ntp
        self._now_s = now_s
        self._set_clock = set_clock
        self.time = WallTime()
        self.uptime_s = 0
        self._last_second = clock.ticks_ms()
        self._has_answer = False  # of the NTP server

    def begin(self, slept):
        """The boot goes on after a sleep with what after() said before it, or anew: {}."""
        self.uptime_s = slept.get("uptime_s", 0)
        self._last_second = self._clock.ticks_add(self._last_second, -slept.get("uptime_ms", 0))
        # A clock that a sleep did not stop knows better than what was counted on.
        start_s = slept.get("start_s", 0)
        if self._now_s or start_s:
            self.time.set(self._now_s or start_s + self.uptime_s, self.uptime_s)
            self.time.read(self.uptime_s)

    def count(self):
        """Bring `uptime_s` and `time` up to now, without allocating."""
        now = self._clock.ticks_ms()
        while self._clock.ticks_diff(now, self._last_second) >= 1000:
            self._last_second = self._clock.ticks_add(self._last_second, 1000)
            self.uptime_s += 1
        self.time.read(self.uptime_s)

    def after(self, sleep_ms):
        """What begin() gets after a sleep of that length."""
        ms = self._clock.ticks_diff(self._clock.ticks_ms(), self._last_second) + sleep_ms
        asleep = {"uptime_s": self.uptime_s + ms // 1000, "uptime_ms": ms % 1000}
        if self.time.is_known:
            asleep["start_s"] = self.time.start_s
        return asleep

    @property
    def is_asking(self):
        """Is an answer on its way?"""
        return self._ntp is not None and self._ntp.is_asking

    @property
    def is_lacking(self):
        """Does nobody know the time yet, though somebody is asked?"""
        return self._ntp is not None and not self.time.is_known

    @property
    def error(self):
        """Why the time is not known, in words, or None."""
        return self._ntp.error

    def ask(self, network):
        """Let the NTP client work, if there is one and a network; allocates."""
        if self._ntp is not None:
            seconds = self._ntp.work(self._ntp.is_asking or network.is_up())
            if seconds:
                self._has_answer = True
                self._set(seconds)

    def hear(self, payload, is_retained):
        """Somebody published the time: seconds since 1970 as digits -> taken?  Allocates.

        A retained one is as old as it may be: it counts where none later is known.  NTP
        knows better than both.
        """
        try:
            seconds = int(payload) if len(payload) == _DIGITS else 0
        except ValueError:
            seconds = 0
        if not EARLIEST_S <= seconds <= LATEST_S or self._has_answer:
            return False
        if is_retained and seconds <= self.time.start_s + self.uptime_s:
            return False
        self._set(seconds)
        return True

    def _set(self, seconds):
        self.time.set(seconds, self.uptime_s)
        if self._set_clock:
            self._set_clock(seconds)
