"""umqtt.simple's client over umqtt31: change the import line, nothing else.

`publish()` at QoS 1 and 2 returns when the broker acknowledged, messages come as
`f(topic, msg)`, and keep alive is off unless asked for.  Unlike the original no
wait is endless: after `connect_timeout` seconds MQTTException is raised.
"""

from . import client as _client
from .connection import since as _since
from .errors import CLOSED, TIMEOUT
from .errors import MQTTError as MQTTException


class MQTTClient(_client.MQTTClient):
    """As `umqtt31.MQTTClient`; `ssl_params` is refused: give `ssl` an SSLContext."""

    def __init__(
        self,
        client_id,
        server,
        port=0,
        user=None,
        password=None,
        keepalive=0,
        ssl=None,
        ssl_params=None,
        **options,
    ):
        if ssl_params:
            raise ValueError("ssl_params: give ssl=SSLContext instead")
        super().__init__(client_id, server, port, user, password, keepalive, ssl, **options)

    def connect(self, clean_session=True, timeout=None, stream=None):
        """-> session present; `timeout` in seconds, `connect_timeout` if None."""
        if timeout is not None:
            self._timeout_ms = int(timeout * 1000)
        return super().connect(clean_session, stream)

    def publish(self, topic, msg, retain=False, qos=0):
        """Publish; at QoS 1 and 2 wait until the broker has acknowledged it."""
        if not self.is_connected:
            raise MQTTException(CLOSED)
        packet_id = super().publish(topic, msg, retain, qos)
        start = _client.time.ticks_ms()
        while packet_id and packet_id in self._session.ids:
            if _since(start) >= self._timeout_ms:
                self._link.fail(TIMEOUT)
            self.poll(10)

    def wait_msg(self):
        """Wait for a packet; raises when the connection is lost."""
        while not super().wait_msg():
            pass
