"""The network through a cable; the same face as wifi.WiFi."""


class Ethernet:
    """A cable: `lan` is a network.LAN or network.WIZNET5K."""

    def __init__(self, lan):
        self._lan = lan
        self._is_active = False
        self.why = None

    def is_up(self):
        """Whether there is a link and an address; DHCP goes on by itself."""
        try:
            if not self._is_active:
                self._lan.active(True)
                self._is_active = True
        except OSError as error:
            self.why = str(error)
            return False
        is_up = self._lan.isconnected()
        self.why = None if is_up else "no link or no address: check cable and DHCP"
        return is_up

    def rssi(self):
        return None

    def find_dns(self):
        return self._lan.ifconfig()[3]
