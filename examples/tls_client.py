"""TLS both ways: the broker shows its certificate, and so do we.

Copy ca.crt, device.crt and device.key to the board; docs/guides/tls.md says how to make them.
The clock is set first, since no certificate is valid in the year 2000.
"""

import time

import ntptime

from umqtt31 import MQTTClient
from umqtt31.wifi import WiFi

SSID = "name"
PASSWORD = "password"
SERVER = "broker.example"  # has to be the name in the broker's certificate
PORT = 8883
PERIOD_MS = 10_000

wifi = WiFi(SSID, PASSWORD)
files = {"ca": "ca.crt", "cert": "device.crt", "key": "device.key"}
client = MQTTClient("sensor-7", SERVER, PORT, level=3, ssl=files)
is_set = False  # is the clock?
count = 0
due = time.ticks_ms()
while True:
    try:
        if time.ticks_diff(time.ticks_ms(), due) >= 0:
            due = time.ticks_add(due, PERIOD_MS)
            count += 1
            client.publish(b"home/sensor-7/secret", b"%d" % count, qos=1)
            # It says which certificate, what is wrong with it and what to do.
            print(count, wifi.why or client.last_error or "")
        if wifi.is_up(100):
            if not is_set:
                ntptime.settime()
                is_set = True
            if client.reconnect(100):
                client.poll(100)
    except OSError as error:
        print(error)
