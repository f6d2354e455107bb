"""ESP32-P4-Function-EV-Board: no Wi-Fi on this chip, but Ethernet through an IP101."""

from port import *

SDA_PIN = 7
SCL_PIN = 8
ETHERNET = {"phy_type": "PHY_IP101", "phy_addr": 1, "mdc": 31, "mdio": 52, "reset": 51}
