"""Olimex ESP32-EVB, on its cable; it has no LED for programs."""

from port import *

SDA_PIN = 13
SCL_PIN = 16
# The LAN8710 on the board speaks the same.
ETHERNET = {"phy_type": "PHY_LAN8720", "phy_addr": 0, "mdc": 23, "mdio": 18}
