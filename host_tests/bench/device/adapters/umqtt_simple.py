"""umqtt.simple, which waits for each answer."""

from face import Face
from umqtt.simple import MQTTClient


class Adapter(Face):
    client_class = MQTTClient

    def __init__(self, port, window=1, timeout=None, keepalive=0, tls=None):
        self.timeout = timeout
        self.keepalive = keepalive
        options = {"ssl": tls} if tls else {}
        self.client = self.client_class(
            "bench", "127.0.0.1", port, None, None, keepalive, **options
        )
        self.client.set_callback(self.take)
        self.step = self.client.wait_msg

    def connect(self, no_delay=True):
        self.client.connect(True, self.timeout)
        self.no_nagle(self.client.sock, no_delay)

    def near_wrap(self):
        self.client.pid = 65530
