"""The codes of `MQTTError`; 1 to 255 are the broker's own return codes of CONNACK."""

REFUSED_VERSION: int
"""The broker does not speak this level of MQTT: try another one."""
REFUSED_CLIENT_ID: int
"""The broker does not take this client id."""
REFUSED_UNAVAILABLE: int
"""The broker is there and not ready: try again later."""
REFUSED_CREDENTIALS: int
"""User name or password are wrong."""
REFUSED_NOT_AUTHORIZED: int
"""The broker's access rules do not let this client in."""
NETWORK: int
"""No connection to the broker, or it broke."""
TIMEOUT: int
"""No answer in time."""
CLOSED: int
"""There is no connection, or the broker closed it."""
PROTOCOL: int
"""The broker sent what MQTT does not allow."""
TOO_LARGE: int
"""A packet larger than `buffer_size`; nothing was sent."""
FULL: int
"""The queue is full; nothing was changed."""
JOURNAL: int
"""The journal's block device failed, or holds what is not ours."""
BUSY: int
"""A handler called what only the program around it may call."""
AWAITING_REL: int
"""The broker sends more QoS 2 messages at once than `max_awaiting_rel`."""
REFUSED_FILTER: int
"""The broker refused a subscription."""
