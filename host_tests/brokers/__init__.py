"""Real brokers on this computer, each in a folder and on a loopback port of its own.

All have the face of `tools.demo.broker.BrokerProcess`; a further broker is a further module
with a subclass that says how it is configured and started.  The demo owns mosquitto.
"""

from tools.demo.broker import BrokerError, BrokerProcess, free_port
from tools.demo.mosquitto import Mosquitto

from .aedes import Aedes
from .amqtt import Amqtt
from .ejabberd import Ejabberd
from .rabbitmq import RabbitMQ3, RabbitMQ4
from .tlsmosquitto import TLSMosquitto
