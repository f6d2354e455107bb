"""The brokers that the suite runs against, and where they differ, with the reason.

A test reads what it may expect from here; nothing in a test asks for a name.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tools.brokers import Aedes, BrokerProcess, Mosquitto, RabbitMQ


@dataclass(frozen=True)
class Family:
    """One broker.  The defaults are what MQTT 3.1 and a broker that persists promise."""

    make: Callable[..., BrokerProcess]
    # The highest QoS at which it takes, and at which it hands over, messages.
    publish_qos: int = 2
    granted_qos: int = 2
    # Has it still got, after kill(), what it acknowledged?  After stop() all have.
    survives_kill: bool = True
    # Does it know after a restart which QoS 2 messages it has handed over?
    is_exact_over_restart: bool = True
    # How many messages a publisher may have in flight and still lose none in the broker.
    window: int = 10
    # Are retained messages found by a filter with wildcards?
    retained_by_wildcard: bool = True

    def interrupt(self, broker: BrokerProcess) -> None:
        """Kill it and start it again, or stop it where a kill loses what it promised."""
        broker.kill() if self.survives_kill else broker.stop()
        broker.start()


FAMILIES = {
    # Writes its state when it stops; a kill takes it back to the last time.
    "mosquitto": Family(Mosquitto, survives_kill=False),
    # Version 1.2 acknowledges before it has written down, works on a publisher's messages
    # side by side and loses some of them (between two clients of paho too, about 1 in
    # 100), and may hand over again what was under way when it stopped.
    "aedes": Family(Aedes, survives_kill=False, is_exact_over_restart=False, window=1),
    # Version 3 has no QoS 2: it grants 1, and answers a PUBLISH of QoS 2 by PUBACK,
    # which ends no QoS 2 flow.  Retained messages are looked up by the filter's text.
    "rabbitmq": Family(RabbitMQ, publish_qos=1, granted_qos=1, retained_by_wildcard=False),
}
