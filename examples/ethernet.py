"""Ethernet in place of Wi-Fi: wait for the cable, publish, go on when it was pulled out.

The pins are those of an Olimex ESP32-POE, others are in boards/; boards with a WIZnet chip
have network.WIZNET5K in place of network.LAN.  The client is the same as with any network.
"""

import time

import network
from machine import Pin

from umqtt31 import MQTTClient

SERVER = "broker.example"
PORT = 1883
PERIOD_MS = 10_000


def start(make, **options):
    # -> the interface.  What it is given differs from port to port.
    interface = make(**options)
    interface.active(True)
    return interface


lan = start(
    network.LAN, mdc=Pin(23), mdio=Pin(18), power=Pin(12), ref_clk=Pin(17),
    ref_clk_mode=Pin.OUT, phy_type=network.PHY_LAN8720, phy_addr=0,
)  # fmt: skip

client = MQTTClient("pump-2", SERVER, PORT, level=3)
is_plugged = None
count = 0
due = time.ticks_ms()
while True:
    if lan.isconnected() != is_plugged:
        is_plugged = lan.isconnected()
        print("network:", lan.ifconfig()[0] if is_plugged else "no cable")
    try:
        if time.ticks_diff(time.ticks_ms(), due) >= 0:
            due = time.ticks_add(due, PERIOD_MS)
            count += 1
            client.publish(b"home/pump-2/count", b"%d" % count, qos=1)  # waits, if it has to
        if not is_plugged:
            time.sleep_ms(100)
        elif client.reconnect(100):
            client.poll(100)
    except OSError as error:
        print(error)
