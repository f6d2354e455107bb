"""A program for umqtt.simple with a real broker, called under CPython and MicroPython."""

from umqtt31.simple import MQTTClient


def run(port, topic):
    """-> sizes of what came: 20,000 bytes to itself, whose callback sends 300 more."""
    client = MQTTClient("a-client-id-of-more-than-23-characters-" + topic, "127.0.0.1", port)
    seen = []

    def on_message(name, msg):
        seen.append(len(msg))
        if len(msg) > 300:
            client.publish(topic, bytes(300), qos=1)

    client.set_callback(on_message)
    client.set_last_will(topic, b"\xff\xfe")
    client.connect()
    client.subscribe(topic, 1)
    client.publish(topic, bytes(20000), False, 1)
    while len(seen) < 2:
        client.wait_msg()
    for _ in range(50):
        client.publish(topic, bytes(200))
    while len(seen) < 52:
        client.wait_msg()
    client.disconnect()
    return seen
