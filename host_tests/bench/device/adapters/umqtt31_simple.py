"""umqtt31.simple: umqtt.simple's face over umqtt31; publish() waits for the answer."""

from face import Face

from umqtt31.simple import MQTTClient


class Adapter(Face):
    highest_qos = 2

    def __init__(self, port, window=1, timeout=10, keepalive=60, tls=None):
        self.client = MQTTClient(
            "bench", "127.0.0.1", port, None, None, keepalive, tls, connect_timeout=timeout
        )
        self.client.on_oversize = self.pass_over
        self.client.set_callback(self.take)
        self.step = self.client.wait_msg

    def pause(self, ms):
        self.client.poll(ms)
