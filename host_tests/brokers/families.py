"""The brokers that the suite runs against, and where they differ, with the reason.

A test reads what it may expect from here; nothing in a test asks for a name.  It runs
once for each level at which the broker speaks; `level` says for which this time.
"""

from collections.abc import Callable
from dataclasses import dataclass

from host_tests.brokers import Aedes, BrokerProcess, Ejabberd, Mosquitto, RabbitMQ3, RabbitMQ4


@dataclass(frozen=True)
class Family:
    """One broker.  The defaults are what MQTT 3.1 and a broker that persists promise."""

    make: Callable[..., BrokerProcess]
    levels: tuple[int, ...]
    # Of those, the ones at which `make test` runs; the others are for `pytest -m broker`.
    usual_levels: tuple[int, ...] = ()
    level: int = 3
    # A user name that the clients need, so that the broker knows them again.
    user: str | None = None
    # The highest QoS at which it takes, and at which it hands over, messages.
    publish_qos: int = 2
    granted_qos: int = 2
    # The QoS that it keeps its promise of when it goes down as `interrupt()` does it;
    # 0: it forgets everything.
    kept_qos: int = 2
    # The highest QoS at which all that waits for a client is handed over, in order.
    offline_qos: int = 2
    # Has it still got, after kill(), what it acknowledged?
    survives_kill: bool = True
    # How many QoS 2 messages a publisher may have in flight and it still loses none.
    qos2_window: int = 10
    # Are retained messages found by a filter with wildcards?
    retained_by_wildcard: bool = True
    # At level 3: does it take a PUBREL that is marked DUP, as one that is sent again is?
    takes_pubrel_again: bool = True
    # At level 5: does it say why it lets a client go whose id another one uses?
    gives_reason: bool = True
    # Does it leave out what is larger than the client takes?
    keeps_to_packet_size: bool = True

    def interrupt(self, broker: BrokerProcess) -> None:
        """Kill it and start it again, or stop it where a kill loses what it promised."""
        broker.kill() if self.survives_kill else broker.stop()
        broker.start()


_RABBITMQ = {
    # It grants QoS 1 at most, and answers a PUBLISH of QoS 2 by PUBACK, which ends no
    # QoS 2 flow; at level 5 it says so before.  Retained messages are looked up by the
    # filter's text.
    "publish_qos": 1,
    "granted_qos": 1,
    "kept_qos": 1,
    "offline_qos": 1,
    "retained_by_wildcard": False,
}

FAMILIES = {
    # Writes its state when it stops; a kill takes it back to the last time.
    # Version 2.0.11 closes the connection without a reason.
    "mosquitto": Family(
        Mosquitto, levels=(3, 4, 5), usual_levels=(3, 5), survives_kill=False, gives_reason=False
    ),
    # In memory.  Version 1.2 works on a publisher's QoS 2 messages side by side and loses
    # about 3 in 100 of them, of those sent one by one 7 in 1,000 on their way to who keeps a
    # session, and releases what waited at QoS 2 by wrong packet ids: between two clients of paho
    # too.
    "aedes": Family(
        Aedes,
        levels=(3, 4),
        usual_levels=(3,),
        kept_qos=0,
        offline_qos=1,
        survives_kill=False,
        qos2_window=1,
        takes_pubrel_again=False,
    ),
    "rabbitmq3": Family(RabbitMQ3, levels=(3, 4), **_RABBITMQ),
    "rabbitmq4": Family(RabbitMQ4, levels=(3, 4, 5), **_RABBITMQ),
    # In memory.
    "ejabberd": Family(
        Ejabberd,
        levels=(4, 5),
        user="u",
        kept_qos=0,
        survives_kill=False,
        keeps_to_packet_size=False,
    ),
}
