"""umqtt.robust2: umqtt.simple2 that remembers what was not acknowledged.

Its queue is as long as the window; it keeps errors, which are raised here.
"""

import umqtt_simple2
from umqtt.robust2 import MQTTClient


class Adapter(umqtt_simple2.Adapter):
    client_class = MQTTClient

    def __init__(self, port, window=1, **settings):
        super().__init__(port, window, **settings)
        del self.step  # for that of this class
        self.client.MSG_QUEUE_MAX = window
        self.number = 0

    def connect(self, no_delay=True):
        self.client.connect()
        self._raise()
        self.no_nagle(self.client.sock, no_delay)

    def _raise(self):
        if self.client.is_conn_issue():
            raise OSError(str(self.client.conn_issue[0]))

    def subscribe(self, topic, qos):
        self.client.subscribe(topic, qos)
        self._settle()

    def settle(self, packet_id, status):
        if status == 0:
            raise OSError("not acknowledged in time")

    def _settle(self, most=0):
        client = self.client
        while client.things_to_do() > most:
            client.check_msg()
            self._raise()

    def publish(self, topic, payload, qos, count, window):
        client = self.client
        for _ in range(count):
            if qos:  # equal messages are one to it
                self.number += 1
                payload = b"%064d" % self.number
            client.publish(topic, payload, False, qos)
            self._raise()
            if qos:
                self._settle(window - 1)
        self._settle()

    def step(self):
        self.client.check_msg()
        self._raise()

    def pause(self, ms):
        super().pause(ms)
        self._raise()
