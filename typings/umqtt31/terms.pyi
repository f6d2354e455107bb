"""What is agreed when a client of level 5 connects: `client.v5`."""

from .properties import Properties

class Options:
    """`client.v5`: what the next CONNECT says, and what the broker answered."""

    session_expiry: int | None
    """Seconds that the broker is to keep the session without a connection, 0xFFFFFFFF for
    ever.  None: 0 for a clean session, else for ever, as at level 4."""
    receive_maximum: int
    """Messages of QoS 1 and 2 that the broker may send before they are acknowledged, up to
    65,535.  0: as many as surely find their place, 36 in RAM and 7 with a journal."""
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
