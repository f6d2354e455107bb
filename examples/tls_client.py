"""TLS both ways: the broker shows its certificate, and so do we.

Copy ca.crt, device.crt and device.key to the board; docs/guides/tls.md says how to make them.
Set the clock first (`ntptime.settime()`), since no certificate is valid in the year 2000.
"""

from umqtt31 import MQTTClient, MQTTError

SERVER = "broker.example"  # has to be the name in the broker's certificate
PORT = 8883

client = MQTTClient(
    "sensor-7",
    SERVER,
    PORT,
    level=4,
    ssl={"ca": "ca.crt", "cert": "device.crt", "key": "device.key"},
)
try:
    client.connect()
    client.publish(b"home/sensor-7/secret", b"42", qos=1)
    print("acknowledged:", client.flush(5000))
    client.disconnect()
except MQTTError as error:
    print(error)  # says which certificate, what is wrong with it and what to do
