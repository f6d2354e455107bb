"""Wi-Fi that stays up, on ESP32 and RP2040.

    from umqtt31.wifi import WiFi

A broker that cannot be reached says nothing about the link: only what the driver itself reports
as down is joined again, with growing pauses.  Needs nothing else of the package.
"""

from micropython import const  # isort: skip

import sys
import time

import network

_FIRST_PAUSE_MS = const(5000)
_LONGEST_PAUSE_MS = const(60000)
_LOOK_MS = const(50)
_RP2_NO_IP = const(2)  # joined, but DHCP has not answered: rp2 has no name for it
_RP2_PM_NONE = const(0xA11140)  # for which older versions have no name


class WiFi:
    """A station of the network `ssid`, which is open without `password`.

    `country`: two letters, where the port has a choice.  `pm`: power management, a value for
    WLAN.config(pm=); None is off on RP2, where it delays what arrives, else the port's own.
    The radio stays off until is_up() is asked.
    """

    on_change = None  # handler(is_up): the link came, or is gone
    why = None  # there is no link, in words; None while it is not known
    _was_up = False
    _pause_ms = _tried_at = 0

    def __init__(self, ssid, password=None, country=None, pm=None):
        self._login = (ssid, password) if password else (ssid,)
        self._country = country
        if pm is None and sys.platform == "rp2":
            pm = _RP2_PM_NONE
        self._pm = pm
        self.wlan = network.WLAN(network.STA_IF)

    def is_up(self, timeout_ms=0):
        """Is there a link?  When not, and it is time, join again; wait for it so long."""
        wlan = self.wlan
        start = time.ticks_ms()
        while True:
            now = time.ticks_ms()
            is_up = wlan.isconnected()
            if is_up:
                self._pause_ms = 0
                self.why = None
            elif not 0 <= time.ticks_diff(now, self._tried_at) < self._pause_ms:  # or days ago
                self._join(wlan, now)
            if is_up != self._was_up:
                self._was_up = is_up
                if self.on_change:
                    self.on_change(is_up)
            left_ms = timeout_ms - time.ticks_diff(now, start)
            if is_up or left_ms <= 0:
                return is_up
            time.sleep_ms(min(left_ms, _LOOK_MS))

    async def keep(self):
        """For asyncio: a task that keeps the link up."""
        from asyncio import sleep_ms

        while True:
            self.is_up()
            await sleep_ms(500)

    def rssi(self):
        """Signal strength in dBm; None without a link."""
        try:
            return self.wlan.status("rssi") or None
        except OSError:
            return None

    def _join(self, wlan, now):
        if self._pause_ms:
            self.why = "%s: %s" % (self._login[0], self._reason())  # of the try that ends now
        self._pause_ms = min(self._pause_ms * 2 or _FIRST_PAUSE_MS, _LONGEST_PAUSE_MS)
        self._tried_at = now
        self._said = "no answer"  # unless the port says more
        try:
            if not wlan.active():
                if self._country and hasattr(network, "country"):
                    network.country(self._country)
                wlan.active(True)
            wlan.disconnect()
            wlan.connect(*self._login)
            if self._pm is not None:  # last: who refuses it still joins
                wlan.config(pm=self._pm)
        except (OSError, RuntimeError) as error:
            self._said = error  # the next pause ends what it may be

    def _reason(self):
        # The port's name of the status, in words; its number differs between ports.
        status = self.wlan.status()
        for name in dir(network):
            is_reason = name[:5] == "STAT_" and name[-3:] not in ("ING", "DLE", "_IP")
            if is_reason and getattr(network, name) == status:
                if name[5:] == "HANDSHAKE_TIMEOUT":  # how access points refuse a password
                    return "wrong password"
                return name[5:].replace("_", " ").lower()
        # Only a station that has joined knows how strong the access point is.
        return "no address" if status == _RP2_NO_IP or self.rssi() else self._said
