"""Olimex ESP32-POE, on its cable; it has no LED for programs."""

from port import *

SDA_PIN = 13
SCL_PIN = 16
ETHERNET = {"phy_type": "PHY_LAN8720", "phy_addr": 0, "mdc": 23, "mdio": 18,
            "power": 12, "ref_clk": 17, "ref_clk_mode": "OUT"}  # fmt: skip
