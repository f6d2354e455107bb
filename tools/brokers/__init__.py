"""Real brokers on this computer, each in a folder and on a loopback port of its own.

All have the face of `process.BrokerProcess`; a further broker is a further module
with a subclass that says how it is configured and started.
"""

from .aedes import Aedes
from .amqtt import Amqtt
from .ejabberd import Ejabberd
from .mosquitto import Mosquitto, TLSMosquitto
from .process import BrokerError, BrokerProcess, free_port
from .rabbitmq import RabbitMQ3, RabbitMQ4

__all__ = [
    "Aedes",
    "Amqtt",
    "BrokerError",
    "BrokerProcess",
    "Ejabberd",
    "Mosquitto",
    "RabbitMQ3",
    "RabbitMQ4",
    "TLSMosquitto",
    "free_port",
]
