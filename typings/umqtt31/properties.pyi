"""MQTT 5 properties, for a client with `level=5`.

from umqtt31.properties import encode

JSON = encode(content_type="application/json")
client.publish("t", "{}", qos=1, properties=JSON)
"""

from collections.abc import Iterable

from ._types import Data, MessageProperties

def encode(
    *, payload_format_indicator: int = ..., content_type: Data = ..., response_topic: Data = ...,
    correlation_data: Data = ..., user_property: Iterable[tuple[Data, Data]] = ...,
    message_expiry_interval: int = ..., subscription_identifier: int = ...,
    will_delay_interval: int = ..., session_expiry_interval: int = ...,
    request_problem_information: int = ..., request_response_information: int = ...,
    reason_string: Data = ..., **other: int | Data,
) -> bytes:  # fmt: skip
    """-> properties as bytes, by their names in the standard: made once, used as often as
    you like.

    Intervals are seconds.  `payload_format_indicator` 1: the payload is UTF-8 text.
    `user_property`: pairs, such as `(("unit", "°C"),)` or `names.items()` of a dict.  Which
    of them a packet may have is said by what takes them.  Allocates.  Raises ValueError,
    TypeError.
    """

class Properties(MessageProperties):
    """What the broker said: a CONNACK's, a DISCONNECT's or a copied message's properties.

    Each is None, or an empty list, if it was not there.  Texts are UTF-8 bytes.
    """

    session_expiry_interval: int | None
    """Seconds for which the broker really keeps the session."""
    assigned_client_identifier: bytes | None
    """The client id, if the client gave none."""
    server_keep_alive: int | None
    """Seconds, in place of `keepalive`."""
    response_information: bytes | None
    """What response topics should begin with."""
    server_reference: bytes | None
    """Another server to use."""
    reason_string: bytes | None
    """Why, for a person."""
    receive_maximum: int | None
    """Messages above QoS 0 that may wait for their answer."""
    topic_alias_maximum: int | None
    """Topic aliases that the broker takes."""
    maximum_qos: int | None
    """0 or 1, if 2 is too much."""
    retain_available: int | None
    """0: the broker keeps no retained messages."""
    maximum_packet_size: int | None
    """Bytes of the largest packet that the broker takes."""
    wildcard_subscription_available: int | None
    """0: no filters with wildcards."""
    subscription_identifier_available: int | None
    """0: no subscription identifiers."""
    shared_subscription_available: int | None
    """0: no shared subscriptions."""
