"""umqtt31, the waiting client.

It sleeps until there is something to read, as a program may; but where heap is counted,
as poll() of the unix port allocates what it returns.
"""

import gc
import select
import socket

from face import Face

from umqtt31 import MQTTClient


class Adapter(Face):
    highest_qos = 2

    def __init__(self, port, window=1, timeout=10, keepalive=60, tls=None):
        self.is_plain = not tls
        self.address = socket.getaddrinfo("127.0.0.1", port)[0][-1]
        more = {"keepalive": keepalive, "connect_timeout": timeout, "ssl": tls}
        more["queue_bytes"] = 128 * (window + 4)  # one with its topic has some 90
        self.client = MQTTClient(
            "bench", "127.0.0.1", port, max_inflight=window, max_mqueue_len=4, **more
        )
        self.client.on_message = self.take
        self.client.on_oversize = self.pass_over

    def take(self, message):
        self.received += 1

    def connect(self, no_delay=True):
        if not self.is_plain:
            self.client.connect()
            return
        stream = socket.socket()
        stream.connect(self.address)
        if no_delay:
            self.no_nagle(stream)
        stream.setblocking(False)
        self.poller = select.poll()
        self.poller.register(stream, select.POLLIN)
        self.client.connect(stream=stream)

    def publish(self, topic, payload, qos, count, window):
        publish = self.client.publish
        if not qos:
            for _ in range(count):
                publish(topic, payload)
            return
        poll = self.client.poll
        wait = self.poller.poll if gc.isenabled() else self.client.next_due_ms
        answers = 0  # that are still to come: one a message at QoS 1, two at QoS 2
        for _ in range(count):
            publish(topic, payload, False, qos)
            answers += qos
            while answers >= window * qos:
                messages = self.received
                wait()
                answers -= poll() + messages - self.received
        while self.client.inflight:
            wait()
            poll()

    def receive(self, count):
        until = self.received + count
        wait = self.poller.poll if gc.isenabled() else self.client.next_due_ms
        while self.received < until:
            wait()
            self.client.poll()

    def pause(self, ms):
        self.client.poll(ms)

    def publish_for(self, topic, payload, qos, ms):
        self.client.publish(topic, payload, False, qos)
        return self.client.flush(ms)
