"""What adapters of clients have in common whose publish() waits for the answer."""


class Waiting:
    """An adapter but for its `client` and connect()."""

    received = 0

    def take(self, topic, payload):
        self.received += 1

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
