"""umqtt.robust: umqtt.simple that connects again."""

import umqtt_simple
from umqtt.robust import MQTTClient


class _Client(MQTTClient):
    def connect(self, clean_session=True, timeout=None):
        # reconnect() gives no time-out.
        return super().connect(clean_session, timeout or self.timeout)


class Adapter(umqtt_simple.Adapter):
    client_class = _Client

    def connect(self, no_delay=True):
        self.client.timeout = self.timeout
        super().connect(no_delay)
