"""Several clients in one program: what sensors say at home goes on to a second broker.

Each client has its own buffers and its own connection, and none waits for another.  A
message is acknowledged at home when the handler returns: by then the other client has it.
"""

from umqtt31 import MQTTClient, queueing
from umqtt31.wifi import WiFi

SSID = "name"
PASSWORD = "password"
SERVER = "broker.example"
PORT = 1883
CLOUD = "cloud.example"
CLOUD_PORT = 1883

wifi = WiFi(SSID, PASSWORD)
home = MQTTClient("gateway", SERVER, PORT, level=3)
cloud = queueing.MQTTClient(
    "gateway", CLOUD, CLOUD_PORT, level=3, max_mqueue_len=50, overflow="drop_oldest"
)


def on_message(message):
    cloud.publish(b"site-1/" + message.topic, message.payload, qos=1)


def serve(client):
    """Let `client` do what is due, without waiting -> is it connected?"""
    try:
        if client.reconnect():
            client.poll(10)
    except OSError as error:
        print(error)
    return client.is_connected


home.on_message = on_message
is_subscribed = False
while True:
    if wifi.is_up(100):
        if serve(home) and not is_subscribed:
            is_subscribed = bool(home.subscribe(b"home/#", qos=1))
        serve(cloud)
