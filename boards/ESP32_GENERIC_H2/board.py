"""ESP32-H2-DevKitM-1: no Wi-Fi on this chip, so a W5500 is wired to its SPI."""

from port import *

SDA_PIN = 12
SCL_PIN = 22
# How to wire the W5500.
ETHERNET = {"phy_type": "PHY_W5500", "phy_addr": 0, "spi": 1, "sck": 4, "mosi": 5, "miso": 0,
            "cs": 1, "int": 10}  # fmt: skip
