"""An MQTT client in fixed memory that loses nothing over a reset.

    from umqtt31 import MQTTClient, MQTTError, Journal

`Journal`, `FileBlockDevice` and the codes of `MQTTError` are loaded when they are first
asked for.
"""

from .client import MQTTClient as MQTTClient
from .codes import *  # noqa: F403 - all of them
from .errors import MQTTError as MQTTError
from .fileblockdevice import FileBlockDevice as FileBlockDevice
from .journal import Journal as Journal

__version__: str
