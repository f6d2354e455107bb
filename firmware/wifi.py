"""Wi-Fi as the node uses it: what umqtt31.wifi keeps up, with the node's settings.

All networks have one face: `is_up()`, `why`, `rssi()`, `find_dns()`.
"""

import network

import umqtt31.wifi


class WiFi(umqtt31.wifi.WiFi):
    """`power_save` is the setting: "none", "performance" or "powersave"."""

    def __init__(self, ssid, password, power_save):
        # A port that has no name for it keeps its own setting.
        pm = getattr(network.WLAN, "PM_" + power_save.upper(), None)
        super().__init__(ssid, password, pm=pm)

    def find_dns(self):
        return self.wlan.ifconfig()[3]
