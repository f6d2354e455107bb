"""Home Assistant finds this sensor by itself: a retained description, states, availability.

Nothing is to be set there but its MQTT integration.  The will marks the sensor as
unavailable when it goes silent.
"""

import json
import time

from umqtt31 import MQTTClient, MQTTError

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
    """What the broker keeps for Home Assistant."""
    client.publish(CONFIG, json.dumps(DESCRIPTION), retain=True, qos=1)
    client.publish(AVAILABLE, b"online", retain=True, qos=1)


# The description is longer than the usual 256 bytes.
client = MQTTClient("cellar", SERVER, PORT, level=4, buffer_size=1024)
client.set_last_will(AVAILABLE, b"offline", retain=True, qos=1)
client.connect()
introduce()
due = time.ticks_ms()
while True:
    try:
        if time.ticks_diff(time.ticks_ms(), due) >= 0:
            due = time.ticks_add(due, PERIOD_MS)
            client.publish(STATE, json.dumps({"temperature": measure()}), qos=1)
        client.poll(100)
    except MQTTError as error:
        print(error)
        while not client.reconnect(1000):
            pass
        introduce()  # the will said "offline" meanwhile
        due = time.ticks_ms()  # what was missed is not made up for
