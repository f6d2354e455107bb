"""umqtt.robust's client over umqtt31: what loses its connection connects again."""

from . import simple

class MQTTClient(simple.MQTTClient):
    """`umqtt31.simple.MQTTClient` whose `publish()`, `wait_msg()` and `check_msg()` survive
    a lost connection; what it has subscribed to is subscribed to again.  `delay()` and `log()`
    are there to be replaced."""

    DELAY: float
    """Seconds between two attempts to connect."""
    DEBUG: bool
    """Print each failure?"""

    def delay(self, i: int) -> None:
        """Wait before the attempt after `i` that failed."""
    def log(self, in_reconnect: bool, e: Exception) -> None:
        """Told of each failure."""
    def reconnect(self) -> int:  # type: ignore[override]  # as umqtt.robust
        """Connect, keeping the session, until it works -> session present, 1 or 0.

        Raises MQTTException if the broker refuses for good.
        """
    def check_msg(self, attempts: int = 2) -> int | None:  # type: ignore[override]
        """Handle one message, if one is there; connects again up to `attempts` times."""
