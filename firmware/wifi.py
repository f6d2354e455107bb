"""Keeps the Wi-Fi link up, and leaves it alone while it is.

A broker that cannot be reached says nothing about the link: only what the driver
itself reports as down is joined again, with growing pauses.  Nothing here waits.
All networks have one face: `is_up()`, `why`, `rssi()`, `find_dns()`.
"""

_FIRST_PAUSE_MS = 5000
_LONGEST_PAUSE_MS = 60000

# Names of status codes, whose numbers differ between ports, and what they mean.  As the
# esp32 port has it, an access point that does not like the password says nothing, too.
_REASONS = (
    ("STAT_WRONG_PASSWORD", "wrong password for %s"),
    ("STAT_HANDSHAKE_TIMEOUT", "wrong password for %s"),
    ("STAT_NO_AP_FOUND", "no network named %s in reach"),
    ("STAT_NO_AP_FOUND_W_COMPATIBLE_SECURITY", "%s wants another kind of password"),
    ("STAT_NO_AP_FOUND_IN_AUTHMODE_THRESHOLD", "%s is not safe enough"),
    ("STAT_NO_AP_FOUND_IN_RSSI_THRESHOLD", "%s is too far away"),
    ("STAT_BEACON_TIMEOUT", "%s has gone out of reach"),
    ("STAT_ASSOC_FAIL", "%s refuses more devices"),
    ("STAT_CONNECT_FAIL", "%s cannot be joined"),
)
# Joined, but DHCP has not answered: rp2 has a status of its own for it, and no name.
_RP2_NO_IP = 2


def reasons(network):
    """{status code: text with %s for the network's name} of the module `network`."""
    known = {}
    for name, text in _REASONS:
        code = getattr(network, name, None)
        if code is not None and code not in known:
            known[code] = text
    return known


class WiFi:
    """A station over `wlan` (network.WLAN); `clock` has ticks_ms/_diff/_add (time).

    `reasons` is of the function above; `power_save` a value for wlan.config(pm=), None
    for the port's own choice.  The radio stays off until is_up() is asked.
    """

    def __init__(self, wlan, ssid, password, clock, reasons=None, power_save=None):
        self._wlan = wlan
        self._ssid = ssid
        self._password = password
        self._clock = clock
        self._reasons = reasons or {}
        self._power_save = power_save
        self._is_active = False
        self._pause_ms = 0
        self._next_try = 0
        self.why = None  # there is no link, in words; None while it is not known

    def is_up(self):
        """Whether there is a link; when not, and it is time, join again."""
        if not self._is_active:
            self._wlan.active(True)
            if self._power_save is not None:
                self._wlan.config(pm=self._power_save)
            self._is_active = True
        if self._wlan.isconnected():
            self._pause_ms = 0
            self.why = None
            return True
        now = self._clock.ticks_ms()
        if not self._pause_ms or self._clock.ticks_diff(now, self._next_try) >= 0:
            if self._pause_ms:
                self.why = self._reason()  # of the try that ends now
            self._pause_ms = min(self._pause_ms * 2 or _FIRST_PAUSE_MS, _LONGEST_PAUSE_MS)
            self._next_try = self._clock.ticks_add(now, self._pause_ms)
            self._join()
        return False

    def rssi(self):
        """Signal strength in dBm, or None."""
        try:
            return self._wlan.status("rssi")
        except (OSError, ValueError, TypeError):
            return None

    def find_dns(self):
        """The name server that DHCP told."""
        return self._wlan.ifconfig()[3]

    def _reason(self):
        status = self._wlan.status()
        text = self._reasons.get(status)
        if text:
            return text % self._ssid
        if status == _RP2_NO_IP or self._rssi_is_there():
            return "%s gives no address" % self._ssid
        return "%s does not answer" % self._ssid

    def _rssi_is_there(self):
        # Only a station that has joined knows how strong the access point is.
        return bool(self.rssi())

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
