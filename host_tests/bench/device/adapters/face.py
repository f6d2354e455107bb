"""What adapters have in common: one face of all clients, as the programs of `device/` use it."""

import time


class Face:
    """A client whose publish() waits for the answer and which leaves the ping to the program;
    `client`, `keepalive` and step(), which takes what came, are the adapter's own."""

    received = 0
    highest_qos = 1

    def take(self, topic, payload):
        self.received += 1

    def pass_over(self, topic_len, payload_len):
        pass

    def connect(self, no_delay=True):
        self.client.connect()
        self.no_nagle(self.client.sock, no_delay)

    def no_nagle(self, sock, is_off=True):
        sock.setsockopt(6, 1, 1 if is_off else 0)

    def subscribe(self, topic, qos):
        self.client.subscribe(topic, qos)

    def publish(self, topic, payload, qos, count, window):
        publish = self.client.publish
        for _ in range(count):
            publish(topic, payload, False, qos)

    def receive(self, count):
        until = self.received + count
        step = self.step
        while self.received < until:
            step()

    def pause(self, ms):
        time.sleep_ms(ms)
        if self.keepalive:
            self.client.ping()
        self.client.check_msg()
