"""Keeps the Wi-Fi link up, and leaves it alone while it is.

A broker that cannot be reached says nothing about the link: only what the driver
itself reports as down is joined again, with growing pauses.  Nothing here waits.
"""

_FIRST_PAUSE_MS = 5000
_LONGEST_PAUSE_MS = 60000


class WiFi:
    """A station over `wlan` (network.WLAN); `clock` has ticks_ms/_diff/_add (time).

    `set_clock`, if given, is called once on the link, until it raises no OSError;
    the network counts as down before (ntptime.settime for TLS).
    """

    def __init__(self, wlan, ssid, password, clock, set_clock=None):
        self._wlan = wlan
        self._ssid = ssid
        self._password = password
        self._clock = clock
        self._set_clock = set_clock
        self._pause_ms = 0
        self._next_try = 0
        wlan.active(True)

    def is_up(self):
        """Whether there is a link; when not, and it is time, join again."""
        if self._wlan.isconnected():
            self._pause_ms = 0
            return self._is_clock_set()
        now = self._clock.ticks_ms()
        if not self._pause_ms or self._clock.ticks_diff(now, self._next_try) >= 0:
            self._pause_ms = min(self._pause_ms * 2 or _FIRST_PAUSE_MS, _LONGEST_PAUSE_MS)
            self._next_try = self._clock.ticks_add(now, self._pause_ms)
            self._join()
        return False

    def _is_clock_set(self):
        if self._set_clock:
            try:
                self._set_clock()
                self._set_clock = None
            except OSError:
                return False
        return True

    def _join(self):
        try:
            self._wlan.disconnect()
            if self._password:
                self._wlan.connect(self._ssid, self._password)
            else:
                self._wlan.connect(self._ssid)
        except OSError:
            # esp32 raises while its own attempt is under way; the next pause ends it.
            pass


class HostNetwork:
    """Where the system below has the network already: the desk, Ethernet."""

    def is_up(self):
        """Always True: whether the broker can be reached is the client's question."""
        return True
