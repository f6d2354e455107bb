"""umqtt31.simple: umqtt.simple's face over umqtt31; publish() waits for the answer."""

from waiting import Waiting

from umqtt31.simple import MQTTClient

HIGHEST_QOS = 2
HAS_WINDOW = False


class Adapter(Waiting):
    def __init__(self, port, window=1, timeout=10, keepalive=60, tls=None):
        self.client = MQTTClient(
            "bench", "127.0.0.1", port, None, None, keepalive, tls, connect_timeout=timeout
        )
        self.client.on_oversize = self.pass_over
        self.client.set_callback(self.take)

    def pass_over(self, topic_len, payload_len):
        pass

    def connect(self, no_delay=True):
        self.client.connect()
        self.client.sock.setsockopt(6, 1, 1 if no_delay else 0)

    def pause(self, ms):
        self.client.poll(ms)
