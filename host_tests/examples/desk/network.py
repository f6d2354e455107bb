"""What the examples use of a board's `network`, on the desk: Ethernet, whose cable is in
while there is the file cable.txt."""

import os

PHY_LAN8720 = 0


class LAN:
    def __init__(self, **pins):
        self._is_active = False

    def active(self, is_active):
        self._is_active = is_active

    def isconnected(self):
        try:
            os.stat("cable.txt")
        except OSError:
            return False
        return self._is_active

    def ifconfig(self):
        return "127.0.0.1", "255.0.0.0", "127.0.0.1", "127.0.0.1"
