"""The smallest useful program: a value every ten seconds, and a lamp to switch.

mosquitto_sub -h broker.example -t 'home/#' -v
mosquitto_pub -h broker.example -t home/sensor-7/led -m on
"""

import time

from umqtt31 import MQTTClient, MQTTError

SERVER = "broker.example"
PORT = 1883
PERIOD_MS = 10_000


def on_message(message):
    # In place: only message.topic and message.payload would take memory.
    if message.topic_is(b"home/sensor-7/led"):
        print("led is", "on" if message.payload_len == 2 else "off")


client = MQTTClient("sensor-7", SERVER, PORT)
client.on_message = on_message
client.connect()
client.subscribe(b"home/sensor-7/led", qos=1)

count = 0
due = time.ticks_ms()
while True:
    try:
        if time.ticks_diff(time.ticks_ms(), due) >= 0:
            due = time.ticks_add(due, PERIOD_MS)
            count += 1
            client.publish(b"home/sensor-7/count", b"%d" % count, qos=1)  # does not wait
        client.poll(100)  # sends, receives, acknowledges, repeats, pings
    except MQTTError as error:
        print(error)
        while not client.reconnect(1000):  # what was published before is kept
            pass
        due = time.ticks_ms()  # what was missed is not made up for
