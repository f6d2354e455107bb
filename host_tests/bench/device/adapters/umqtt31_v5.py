"""umqtt31 at level 5, without properties."""

import umqtt31_native

from umqtt31.v5 import MQTTClient


class Adapter(umqtt31_native.Adapter):
    client_class = MQTTClient
    level = 5
