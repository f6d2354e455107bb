"""MQTT 5: its client, its messages, and options of subscriptions.

from umqtt31.v5 import NO_LOCAL, MQTTClient

client.subscribe("home/#", 1 | NO_LOCAL)
"""

from collections.abc import Callable
from typing import Any

import umqtt31 as _client

from ._types import Data, Filters, MessageProperties
from .properties import Properties

NO_LOCAL: int
"""To be added to the QoS of a subscription: not what this client published itself."""
RETAIN_AS_PUBLISHED: int
"""`message.retain` is what the publisher gave, not whether the broker had kept it."""
RETAINED_IF_NEW: int
"""Retained messages only if there was no such subscription yet."""
NO_RETAINED: int
"""No retained messages."""

class Message5(_client.Message, MessageProperties):
    """What `on_message` is called with at level 5: a Message with its properties by name.

    Valid until the handler returns.  Reading a property allocates what it returns, if that
    is not a small number.
    """

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

class MQTTClient(_client.MQTTClient):
    """As `umqtt31.MQTTClient`, at level 5, without `retry_interval`.

    `on_drop(packet_id, reason)` is told the broker's reason code, too.
    """

    on_message: Callable[[Any], object] | None
    """`handler(message)` with a Message5, valid until it returns."""

    @property
    def v5(self) -> Options:
        """What CONNECT says, and what the broker answered."""
    def publish(
        self, topic: Data, msg: Data, retain: bool = False, qos: int = 0, max_age: int = 0,
        properties: bytes = b"",
    ) -> int:  # fmt: skip
        """As `umqtt31.MQTTClient.publish()`.  `max_age`: seconds after which the broker gives the
        message up, 0 for never; while it waits here only `queueing` does.  `properties`: see
        `encode`."""
    def subscribe(self, topic: Data | Filters, qos: int = 0, properties: bytes = b"") -> list[int]:
        """As `umqtt31.MQTTClient.subscribe()`, with options added to each QoS; the properties
        hold for all filters of this call."""

class Options:
    """`client.v5`: what the next CONNECT says, and what the broker answered."""

    session_expiry: int | None
    """Seconds that the broker is to keep the session without a connection, 0xFFFFFFFF for
    ever.  None: 0 for a clean session, else for ever, as at level 4."""
    receive_maximum: int
    """Messages of QoS 1 and 2 that the broker may send before they are acknowledged, up to
    65,535.  0: as many as surely find their place, 36 with 512 `max_awaiting_rel`."""
    maximum_packet_size: int | None
    """Bytes of the largest packet that the broker may send; it leaves larger ones out.
    None: `buffer_size`.  0: any size, so that `on_oversize` is told."""
    topic_aliases: int
    """So many topics go out as a number, from their second message on, if the broker takes
    as many.  Topics have to be `bytes`."""
    properties: bytes
    """Further properties of CONNECT, see `encode`: user_property, request_problem_information,
    request_response_information."""
    will_properties: bytes
    """Properties of the will, see `encode`: will_delay_interval, message_expiry_interval,
    content_type and the like."""
    leave_reason: int
    """Reason code of `disconnect()`: 0, or 4 to have the will published all the same."""
    leave_properties: bytes
    """Properties of `disconnect()`, see `encode`: session_expiry_interval, reason_string,
    user_property."""
    connack: Properties
    """What the last CONNACK said."""
    disconnect: Properties
    """What the broker's last DISCONNECT said."""
    reason: int
    """The reason code that the broker gave last: of a refused connection, message or
    subscription, or of a DISCONNECT."""
    assigned_client_id: bytes
    """The client id that the broker made, for a client without one."""
