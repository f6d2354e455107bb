"""The smallest useful program: a value every ten seconds, and a lamp to switch.

mosquitto_sub -h broker.example -t 'home/#' -v
mosquitto_pub -h broker.example -t home/sensor-7/led -m on
"""

import time

from umqtt31 import MQTTClient
from umqtt31.wifi import WiFi

SSID = "name"
PASSWORD = "password"
SERVER = "broker.example"
PORT = 1883
PERIOD_MS = 10_000


def on_message(message):
    # In place: only message.topic and message.payload would take memory.
    if message.topic_is(b"home/sensor-7/led"):
        print("led is", "on" if message.payload_len == 2 else "off")


wifi = WiFi(SSID, PASSWORD)
client = MQTTClient("sensor-7", SERVER, PORT, level=3)
client.on_message = on_message

is_subscribed = False
count = 0
due = time.ticks_ms()
while True:
    try:
        if time.ticks_diff(time.ticks_ms(), due) >= 0:
            due = time.ticks_add(due, PERIOD_MS)
            count += 1
            client.publish(b"home/sensor-7/count", b"%d" % count, qos=1)  # does not wait
            print(count, wifi.why or client.last_error or "")
        if wifi.is_up(100) and client.reconnect(100):
            is_subscribed = is_subscribed or bool(client.subscribe(b"home/sensor-7/led", qos=1))
            client.poll(100)  # sends, receives, acknowledges, repeats, pings
    except OSError as error:  # what was published before is kept
        print(error)
