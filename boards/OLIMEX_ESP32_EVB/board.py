"""Olimex ESP32-EVB, on its cable; it has no LED for programs."""

from port import *

NAME = "OLIMEX_ESP32_EVB"
NETWORK = "ethernet"
LED_PIN = None
LED_ON = 1
WATCHDOG_MS = 30000
SDA_PIN = 13
SCL_PIN = 16
ETHERNET = {
    "phy_type": "PHY_LAN8720",  # the LAN8710 on the board speaks the same
    "phy_addr": 0,
    "mdc": 23,
    "mdio": 18,
}
