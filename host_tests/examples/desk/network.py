"""What the examples use of a board's `network`, on the desk: Ethernet, whose cable is in
while there is the file cable.txt, and Wi-Fi, which is in reach but for the file no_wifi.txt."""

import os

PHY_LAN8720 = 0
STA_IF = 0
STAT_NO_AP_FOUND = 201


def _exists(path):
    try:
        os.stat(path)
    except OSError:
        return False
    return True


class WLAN:
    """What was tried without success is told in the file wifi_tried.txt."""

    def __init__(self, interface):
        self._is_active = self._is_joined = False

    def active(self, is_active=None):
        if is_active is not None:
            self._is_active = is_active
        return self._is_active

    def config(self, **options):
        pass

    def connect(self, ssid, password=None):
        self._is_joined = not _exists("no_wifi.txt")
        if not self._is_joined:
            open("wifi_tried.txt", "w").close()

    def disconnect(self):
        self._is_joined = False

    def isconnected(self):
        self._is_joined = self._is_joined and not _exists("no_wifi.txt")
        return self._is_joined

    def status(self, what=None):
        if what:
            raise OSError("not connected")
        return STAT_NO_AP_FOUND


class LAN:
    def __init__(self, **pins):
        self._is_active = False

    def active(self, is_active):
        self._is_active = is_active

    def isconnected(self):
        return self._is_active and _exists("cable.txt")

    def ifconfig(self):
        return "127.0.0.1", "255.0.0.0", "127.0.0.1", "127.0.0.1"
