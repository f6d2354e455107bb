"""What the examples use of a board's `network`, on the desk: Wi-Fi and Ethernet, in reach but for
the file no_link.txt.  What was tried meanwhile is told in the file link_tried.txt."""

import os

PHY_LAN8720 = 0
STA_IF = 0
STAT_NO_AP_FOUND = 201


def _is_in_reach():
    try:
        os.stat("no_link.txt")
    except OSError:
        return True
    open("link_tried.txt", "w").close()
    return False


class WLAN:
    def __init__(self, interface):
        self._is_active = self._is_joined = False

    def active(self, is_active=None):
        if is_active is not None:
            self._is_active = is_active
        return self._is_active

    def config(self, **options):
        pass

    def connect(self, ssid, password=None):
        self._is_joined = _is_in_reach()

    def disconnect(self):
        self._is_joined = False

    def isconnected(self):
        self._is_joined = self._is_joined and _is_in_reach()
        return self._is_joined

    def status(self, what=None):
        if what:
            raise OSError("not connected")
        return STAT_NO_AP_FOUND


class LAN(WLAN):
    def __init__(self, **pins):
        self._is_active = False

    def isconnected(self):
        return self._is_active and _is_in_reach()

    def ifconfig(self):
        return "127.0.0.1", "255.0.0.0", "127.0.0.1", "127.0.0.1"
