"""Home Assistant finds this sensor by itself: a retained description, states, availability.

Nothing is to be set there but its MQTT integration.  The will marks the sensor as
unavailable when it goes silent.
"""

import json
import time

from umqtt31 import MQTTClient
from umqtt31.wifi import WiFi

SSID = "name"
PASSWORD = "password"
SERVER = "broker.example"
PORT = 1883
PERIOD_MS = 30_000

STATE = b"home/cellar/state"
AVAILABLE = b"home/cellar/available"
CONFIG = b"homeassistant/sensor/cellar_temperature/config"

# One for each value; the keys are Home Assistant's.
DESCRIPTION = {
    "name": "Temperature",
    "unique_id": "cellar_temperature",
    "device_class": "temperature",
    "state_class": "measurement",
    "unit_of_measurement": "°C",
    "value_template": "{{ value_json.temperature }}",
    "state_topic": STATE.decode(),
    "availability_topic": AVAILABLE.decode(),
    "device": {"identifiers": ["cellar"], "name": "Cellar"},
}


def measure():
    """Degrees Celsius; ask a sensor of yours here."""
    return 12.5


def introduce():
    """What the broker keeps for Home Assistant -> True."""
    client.publish(CONFIG, json.dumps(DESCRIPTION), retain=True, qos=1)
    client.publish(AVAILABLE, b"online", retain=True, qos=1)
    return True


# The description is longer than the usual 256 bytes.
wifi = WiFi(SSID, PASSWORD)
client = MQTTClient("cellar", SERVER, PORT, level=3, buffer_size=1024)
client.set_last_will(AVAILABLE, b"offline", retain=True, qos=1)
is_introduced = False
due = time.ticks_ms()
while True:
    try:
        if time.ticks_diff(time.ticks_ms(), due) >= 0:
            due = time.ticks_add(due, PERIOD_MS)
            client.publish(STATE, json.dumps({"temperature": measure()}), qos=1)
        if not client.is_connected:
            is_introduced = False  # the will says "offline" then
        if wifi.is_up(100) and client.reconnect(100):
            client.poll(100)  # first, so that the queue has room
            is_introduced = is_introduced or introduce()
    except OSError as error:
        print(error)
