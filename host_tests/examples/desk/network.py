"""What the examples use of a board's `network`, on the desk: Wi-Fi and Ethernet, in reach but for
the file no_link.txt.  What was tried meanwhile is told in the file link_tried.txt."""

import os

import wlan
from wlan import STA_IF, STAT_NO_AP_FOUND

PHY_LAN8720 = 0


def _is_in_reach():
    try:
        os.stat("no_link.txt")
    except OSError:
        return True
    open("link_tried.txt", "w").close()
    return False


class WLAN(wlan.WLAN):
    def __init__(self, interface):
        super().__init__(interface)
        self.number = STAT_NO_AP_FOUND

    def connect(self, *login):
        self.is_in_reach = _is_in_reach()
        super().connect(*login)

    def isconnected(self):
        self.is_up = self.is_up and _is_in_reach()
        return self.is_up


class LAN(WLAN):
    def __init__(self, **pins):
        super().__init__(STA_IF)

    def isconnected(self):
        return self.is_active and _is_in_reach()
