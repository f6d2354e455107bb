"""umqtt.robust's client over umqtt31: what loses its connection connects again.

`publish()`, `wait_msg()` and `check_msg()` survive a lost connection; `reconnect()` tries
until it works, with `delay(i)` between and `log(in_reconnect, e)` for each failure, which
a subclass may replace.  Unlike the original it subscribes again where the broker did not
keep the session, and a broker that is not available yet is tried again.  docs/guides/moving.md.
"""

from micropython import const  # isort: skip

import time

from .simple import MQTTClient as _Simple
from .simple import MQTTException

_UNAVAILABLE = const(3)
_TOO_LARGE = const(260)


class MQTTClient(_Simple):
    """As `umqtt31.simple.MQTTClient`; `DELAY` in seconds, `DEBUG` prints."""

    DELAY = 2
    DEBUG = False
    _is_robust = True

    def delay(self, i):
        """Wait before the attempt after `i` that failed."""
        time.sleep(self.DELAY)

    def log(self, in_reconnect, e):
        """Told of each failure."""
        if self.DEBUG:
            print("mqtt reconnect: %r" % e if in_reconnect else "mqtt: %r" % e)  # noqa: T201

    def reconnect(self):
        """Connect, keeping the session, until it works -> session present.

        Raises MQTTException if the broker refuses for good.
        """
        i = 0
        while True:
            try:
                # A subclass's connect(), if it has one.  Without a client id no session is kept.
                return self.connect(not self.client_id)
            except OSError as error:
                if isinstance(error, MQTTException) and error.code != _UNAVAILABLE:
                    raise
                self.log(True, error)
            i += 1
            self.delay(i)

    # By super() each call would copy its arguments.
    _publish_once = _Simple.publish

    def publish(self, topic, msg, retain=False, qos=0):
        """Publish, as often as it takes."""
        while True:
            try:
                return self._publish_once(topic, msg, retain, qos)
            except OSError as error:
                self._on_loss(error)

    def wait_msg(self):
        """Wait for a packet, on whichever connection."""
        while True:
            try:
                return super().wait_msg()
            except OSError as error:
                self._on_loss(error)

    def check_msg(self, attempts=2):
        """Handle one message, if one is there; connects again up to `attempts` times."""
        while attempts:
            try:
                return super().check_msg()
            except OSError as error:
                self._on_loss(error)
            attempts -= 1

    def _on_loss(self, error):
        # A message that was too large is lost, not the connection; its handler may raise OSError.
        if isinstance(error, MQTTException) or getattr(error, "code", 0) == _TOO_LARGE:
            raise error
        self.log(False, error)
        self.reconnect()
