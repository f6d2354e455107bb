"""Counts the seconds since the boot, and knows what time it is once somebody said so.

Counts on over deep sleeps.  Asks an NTP server in the background where there is one, and
hears what somebody publishes.
"""

EARLIEST_S = 1735689600  # 2025-01-01: what is earlier is no time
_LATEST_S = 0xFFFFFFFF  # 2106: what is later does not fit into a reading
_DIGITS = 10


class Timekeeper:
    """`clock` as in node.Node; `ntp` an asking.NTP or None; `now_s` the time, seconds since
    1970, or 0 if the board does not know; `set_clock(seconds)` hears it, or None.

    `uptime_s`, and `high` and `low`, the time, are those of the last count().  The time is in
    two halves of 16 bits: the whole number is too large for the small integers of a 32-bit
    port, so that it would allocate.  All zeros: nobody has said it yet.
    """

    def __init__(self, clock, ntp=None, now_s=0, set_clock=None):
        self._clock = clock
        self._ntp = ntp
        self._now_s = now_s
        self._set_clock = set_clock
        self._base_high = self._base_low = 0  # the time at uptime 0
        self.high = self.low = 0
        self.uptime_s = 0
        self._last_second = clock.ticks_ms()
        self._has_answer = False  # of the NTP server

    def begin(self, slept):
        """The boot goes on after a sleep with what after() said before it, or anew: {}."""
        self.uptime_s = slept.get("uptime_s", 0)
        self._last_second = self._clock.ticks_add(self._last_second, -slept.get("uptime_ms", 0))
        # If the sleep did not stop the clock, it knows the time better than the counters.
        start_s = slept.get("start_s", 0)
        if self._now_s or start_s:
            self._take(self._now_s or start_s + self.uptime_s)
            self._read()

    def count(self):
        """Bring all up to now, without allocating."""
        now = self._clock.ticks_ms()
        while self._clock.ticks_diff(now, self._last_second) >= 1000:
            self._last_second = self._clock.ticks_add(self._last_second, 1000)
            self.uptime_s += 1
        self._read()

    def after(self, sleep_ms):
        """What begin() gets after a sleep of that length."""
        ms = self._clock.ticks_diff(self._clock.ticks_ms(), self._last_second) + sleep_ms
        asleep = {"uptime_s": self.uptime_s + ms // 1000, "uptime_ms": ms % 1000}
        if self._base_high:
            asleep["start_s"] = self._start_s()
        return asleep

    @property
    def is_asking(self):
        """Is an answer on its way?"""
        return self._ntp is not None and self._ntp.is_asking

    @property
    def is_lacking(self):
        """Does nobody know the time yet, though somebody is asked?"""
        return self._ntp is not None and not self._base_high

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
        if not EARLIEST_S <= seconds <= _LATEST_S or self._has_answer:
            return False
        if is_retained and seconds <= self._start_s() + self.uptime_s:
            return False
        self._set(seconds)
        return True

    def _set(self, seconds):
        self._take(seconds)
        if self._set_clock:
            try:
                self._set_clock(seconds)
            except OverflowError:
                pass  # a port of 32 bits knows no time after 2038

    def _take(self, seconds):
        base = seconds - self.uptime_s
        self._base_high = base >> 16
        self._base_low = base & 0xFFFF

    def _start_s(self):
        return self._base_high << 16 | self._base_low

    def _read(self):
        if self._base_high:
            low = self._base_low + (self.uptime_s & 0xFFFF)
            self.high = self._base_high + (self.uptime_s >> 16) + (low >> 16)
            self.low = low & 0xFFFF
