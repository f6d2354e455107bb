"""umqtt.simple, which waits for each answer."""

from umqtt.simple import MQTTClient
from waiting import Waiting

HIGHEST_QOS = 1
HAS_WINDOW = False


class Adapter(Waiting):
    client_class = MQTTClient

    def __init__(self, port, window=1, timeout=None, keepalive=0, tls=None):
        self.timeout = timeout
        self.keepalive = keepalive
        options = {"ssl": tls} if tls else {}
        self.client = self.client_class(
            "bench", "127.0.0.1", port, None, None, keepalive, **options
        )
        self.client.set_callback(self.take)

    def connect(self, no_delay=True):
        self.client.connect(True, self.timeout)
        self.client.sock.setsockopt(6, 1, 1 if no_delay else 0)

    def pause(self, ms):
        import time

        time.sleep_ms(ms)
        if self.keepalive:
            self.client.ping()
        self.client.check_msg()

    def near_wrap(self):
        self.client.pid = 65530
