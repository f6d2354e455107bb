"""MQTT 5, which a client with `level=5` loads: its messages, and options of subscriptions.

from umqtt31.v5 import NO_LOCAL

client.subscribe("home/#", 1 | NO_LOCAL)
"""

from . import message as _message
from .properties import Properties

NO_LOCAL: int
"""To be added to the QoS of a subscription: not what this client published itself."""
RETAIN_AS_PUBLISHED: int
"""`message.retain` is what the publisher gave, not whether the broker had kept it."""
RETAINED_IF_NEW: int
"""Retained messages only if there was no such subscription yet."""
NO_RETAINED: int
"""No retained messages."""

class Message5(_message.Message):
    """What `on_message` is called with at level 5: a Message with its properties.

    Valid until the handler returns.  Reading a property allocates what it returns, if that
    is not a small number.
    """

    payload_format_indicator: int | None
    """1: the payload is UTF-8 text."""
    message_expiry_interval: int | None
    """Seconds until it is too old."""
    content_type: bytes | None
    """What the payload is, mostly a MIME type."""
    response_topic: bytes | None
    """Where an answer is to go."""
    correlation_data: bytes | None
    """What the answer has to bring back."""
    subscription_identifier: list[int]
    """The identifiers of the subscriptions that it is for."""
    user_property: list[tuple[bytes, bytes]]
    """Pairs, in their order; names may repeat."""
    properties: Properties
    """All of them, copied: to be kept."""

    def refuse(self, reason: int) -> None:
        """Have it answered with this reason code (0x80 or more: 0x83 implementation specific,
        0x87 not authorized, 0x97 quota exceeded, 0x99 payload format invalid): the broker gives
        it up.  At QoS 0 nobody is told.  Not for asyncio."""
    def property_into(self, number: int, target: bytearray | memoryview) -> int:
        """Copy the property with this identifier (3 content type, 8 response topic, 9
        correlation data) to the start of `target` -> bytes copied (what fits), -1 if it is
        not there.  Allocates nothing."""
