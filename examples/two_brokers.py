"""Several clients in one program: what sensors say at home goes on to a second broker.

Each client has its own buffers and its own connection, and none waits for another.  A
message is acknowledged at home when the handler returns: by then the other client has it.
"""

from umqtt31 import MQTTClient, MQTTError

SERVER = "broker.example"
PORT = 1883
CLOUD = "cloud.example"
CLOUD_PORT = 1883

home = MQTTClient("gateway", SERVER, PORT, level=4)
cloud = MQTTClient(
    "gateway", CLOUD, CLOUD_PORT, level=4, max_mqueue_len=50, overflow="drop_oldest"
)


def on_message(message):
    cloud.publish(b"site-1/" + message.topic, message.payload, qos=1)


def serve(client):
    """Let `client` do what is due, without waiting."""
    if not client.is_connected and not client.reconnect():
        return
    try:
        client.poll(10)
    except MQTTError as error:
        print(error)


home.on_message = on_message
home.connect(clean_session=False)
home.subscribe(b"home/#", qos=1)
while True:
    serve(home)
    serve(cloud)
