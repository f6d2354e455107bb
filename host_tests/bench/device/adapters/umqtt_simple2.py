"""umqtt.simple2, whose publish() does not wait; answers come through check_msg()."""

from face import Face
from umqtt.simple2 import MQTTClient


class Adapter(Face):
    client_class = MQTTClient

    def __init__(self, port, window=1, timeout=None, keepalive=0, tls=None):
        self.open = 0
        self.keepalive = keepalive
        options = {"ssl": True} if tls else {}
        self.client = self.client_class(
            "bench",
            "127.0.0.1",
            port,
            keepalive=keepalive,
            socket_timeout=timeout or 5,
            message_timeout=timeout or 10,
            **options,
        )
        self.client.set_callback(self.take)
        self.step = self.client.check_msg
        self.client.set_callback_status(self.settle)

    def take(self, topic, payload, retained, duplicate):
        self.received += 1

    def settle(self, packet_id, status):
        self.open -= 1
        if status == 0:
            raise OSError("not acknowledged in time")

    def subscribe(self, topic, qos):
        self.open += 1
        self.client.subscribe(topic, qos)
        self._settle()

    def _settle(self):
        while self.open:
            self.client.check_msg()

    def publish(self, topic, payload, qos, count, window):
        client = self.client
        for _ in range(count):
            client.publish(topic, payload, False, qos)
            if qos:
                self.open += 1
                while self.open >= window:
                    client.check_msg()
        self._settle()

    def near_wrap(self):
        from umqtt.simple2 import pid_gen

        self.client.newpid = pid_gen(65530)
