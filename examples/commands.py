"""Commands with answers: each is carried out exactly once and answered with its number.

    mosquitto_sub -h broker.example -t home/door/answer &
    mosquitto_pub -h broker.example -t home/door/command -q 2 -m '{"id": 7, "do": "open"}'

At QoS 2, with a session that the broker keeps, a command that was sent while the device
was away arrives when it is back, once.
"""

import json

from umqtt31 import MQTTClient
from umqtt31.wifi import WiFi

SSID = "name"
PASSWORD = "password"
SERVER = "broker.example"
PORT = 1883

COMMAND = b"home/door/command"
ANSWER = b"home/door/answer"

is_open = False


def move(to_open):
    global is_open
    is_open = to_open
    return "open" if is_open else "closed"


COMMANDS = {
    "open": lambda: move(True),
    "close": lambda: move(False),
    "state": lambda: move(is_open),
}


def answer(payload):
    """-> what to answer to a command, whatever it is."""
    number = None
    try:
        command = json.loads(payload)
        number = command["id"]
        return {"id": number, "result": COMMANDS[command["do"]]()}
    except (ValueError, KeyError, TypeError) as error:
        return {"id": number, "error": "%s: %s" % (type(error).__name__, error)}


def on_message(message):
    # It is acknowledged when this returns, and the answer is queued by then.
    client.publish(ANSWER, json.dumps(answer(message.payload)), qos=1)


wifi = WiFi(SSID, PASSWORD)
client = MQTTClient("door", SERVER, PORT, level=3, max_mqueue_len=64)  # a poll()'s answers
client.on_message = on_message
is_subscribed = False
while True:
    try:
        if wifi.is_up(1000) and client.reconnect(1000):
            is_subscribed = is_subscribed or bool(client.subscribe(COMMAND, qos=2))
            client.poll(1000)
    except OSError as error:
        print(error)
