"""umqtt31.simple: umqtt.simple's face over umqtt31; publish() waits for the answer."""

from umqtt31.simple import MQTTClient

HIGHEST_QOS = 2
HAS_WINDOW = False


class Adapter:
    def __init__(self, port, window=1, timeout=10, keepalive=60, tls=None):
        self.received = 0
        self.client = MQTTClient(
            "bench", "127.0.0.1", port, None, None, keepalive, tls, connect_timeout=timeout
        )
        self.client.on_oversize = self.pass_over
        self.client.set_callback(self.take)

    def take(self, topic, payload):
        self.received += 1

    def pass_over(self, topic_len, payload_len):
        pass

    def connect(self, no_delay=True):
        self.client.connect()
        self.client.sock.setsockopt(6, 1, 1 if no_delay else 0)

    def subscribe(self, topic, qos):
        self.client.subscribe(topic, qos)

    def publish(self, topic, payload, qos, count, window):
        publish = self.client.publish
        for _ in range(count):
            publish(topic, payload, False, qos)

    def receive(self, count):
        until = self.received + count
        while self.received < until:
            self.client.wait_msg()

    def pause(self, ms):
        self.client.poll(ms)
