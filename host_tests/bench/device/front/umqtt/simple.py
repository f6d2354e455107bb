"""umqtt31.simple under the name of umqtt.simple, so that its programs run unchanged."""

from umqtt31.simple import MQTTClient  # noqa: F401
