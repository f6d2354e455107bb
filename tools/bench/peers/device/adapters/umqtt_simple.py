"""umqtt.simple, which waits for each answer."""

from umqtt.simple import MQTTClient

HIGHEST_QOS = 1
HAS_WINDOW = False


class Adapter:
    client_class = MQTTClient

    def __init__(self, port, window=1, timeout=None, keepalive=0, tls=None):
        self.received = 0
        self.timeout = timeout
        self.keepalive = keepalive
        options = {"ssl": tls} if tls else {}
        self.client = self.client_class(
            "bench", "127.0.0.1", port, None, None, keepalive, **options
        )
        self.client.set_callback(self.take)

    def take(self, topic, payload):
        self.received += 1

    def connect(self, no_delay=True):
        self.client.connect(True, self.timeout)
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
        import time

        time.sleep_ms(ms)
        if self.keepalive:
            self.client.ping()
        self.client.check_msg()

    def near_wrap(self):
        self.client.pid = 65530
