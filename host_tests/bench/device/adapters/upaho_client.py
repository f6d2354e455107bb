"""upaho at level 4; a window is the messages without an answer."""

from face import Face
from upaho import Client, MQTTProtocolVersion, ReasonCode


class Adapter(Face):
    highest_qos = 2

    def __init__(self, port, window=1, timeout=None, keepalive=60, tls=None):
        self.port = port
        self.keepalive = keepalive
        self.client = Client("bench", protocol=MQTTProtocolVersion.MQTTv311)
        if tls:
            self.client.tls_set()
        self.client.on_message = self.take

    def take(self, client, userdata, message):
        self.received += 1

    def connect(self, no_delay=True):
        self._check(self.client.connect("127.0.0.1", self.port, self.keepalive))
        self.no_nagle(self.client._sock, no_delay)

    def _check(self, code):
        if code != ReasonCode.SUCCESS:
            raise OSError("reason code %s" % code)

    def subscribe(self, topic, qos):
        self.client.subscribe(str(topic, "utf-8"), qos)

    def publish(self, topic, payload, qos, count, window):
        client = self.client
        topic = str(topic, "utf-8")
        waiting = client._inflight_messages
        for _ in range(count):
            client.publish(topic, payload, qos)
            while len(waiting) >= window:
                self._check(client.loop())
        while waiting:
            self._check(client.loop())

    def step(self):
        self._check(self.client.loop())

    def pause(self, ms):
        self._check(self.client.loop(ms / 1000))

    def near_wrap(self):
        self.client._last_mid = 65530
