"""Mistakes that mypy and pyright have to find: one in each line that says so."""

import ssl

import umqtt31.protocol  # refused

import umqtt31
from umqtt31 import CLOSED, FULL, Journal, Message, MQTTClient, MQTTError
from umqtt31.aio import MQTTClient as AsyncClient
from umqtt31.queueing import MQTTClient as QueueingClient
from umqtt31.simple import MQTTClient as SimpleClient


def on_message(message: Message):
    print(message.payload_len, message[0])
    print(message.payload_length)  # refused
    print(message["led"])  # refused


def on_pair(topic: bytes, payload: bytes):
    print(topic, payload)


client = MQTTClient("sensor-7", "broker.example", keepalive=30)
client.on_message = on_message
client.on_message = on_pair  # refused
client.on_msg = on_message  # refused
client.set_callback(on_pair)
client.connect(clean_session=False)
print(client.nosuch)  # refused
print(umqtt31.NOSUCH)  # refused
client.acknowledge()  # refused
client.publish(b"home/led", 17)  # refused
client.publish(b"home/led", b"17", quality=1)  # refused
client.inflight = 3  # refused
print(client.inflight + client.stats.sent)
print(client.stats.send)  # refused
client.flush()  # refused
client.unsubscribe(b"home/led")
client.subscribe([b"home/led"])  # refused
try:
    client.poll(100)
except MQTTError as error:
    print(error.code == FULL or error.code == CLOSED, error.errno)
    print(error.number)  # refused
MQTTClient("sensor-7", "broker.example", overflow="latest")  # refused
QueueingClient("sensor-7", "broker.example", overflow="latest")
QueueingClient("sensor-7", "broker.example", overflow="newest")  # refused
MQTTClient("sensor-7", "broker.example", window=3)  # refused
MQTTClient("sensor-7", "broker.example", ssl="ca.pem")  # refused
MQTTClient("sensor-7", "broker.example", ssl={"ca": "ca.pem"})
MQTTClient("sensor-7", "broker.example", ssl=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
Journal("journal.bin")  # refused
SimpleClient("sensor-7", "broker.example", ssl=8883)  # refused
simple = SimpleClient("sensor-7", "broker.example", ssl_params={})
simple = SimpleClient(b"sensor-7", b"192.168.1.10", user=b"me", password=b"secret")
simple = SimpleClient("sensor-7", "broker.example", "1883", keepalive=None)
simple.sock.setblocking(False)
packet_id = simple.publish(b"home/led", b"on") + 1  # refused


async def listen(client: AsyncClient):
    client.publish_nowait(b"home/led", b"on")
    packet_id = await client.publish(b"home/led", b"on", qos=1)
    print(packet_id + 1)
    await client.flush(1000)  # refused
    async for one in client.messages(b"home/#"):
        print(one.topic.decode(), one.payload)
        print(one.payload_length)  # refused
        one.done()
    for one in client.messages():  # refused
        print(one)
