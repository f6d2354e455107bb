"""`ordered=True`: one message at a time, so that they arrive in the order of publish().

Loaded only by a client with that option, which also makes its window 1.
"""

from micropython import const

from .errors import MQTTError

_BUSY = const(263)
_WAITS = const(0x07)


class Ordered:
    """The rules of SIB for one client."""

    def __init__(self, session):
        self._is_publishing = False
        self._qos = 0  # that of all messages, from the first one on
        for slot in session.order[: session.count]:
            self._qos = min(session.state[slot] & _WAITS, 2) or self._qos

    def publish(self, client, topic, msg, retain, qos, max_age):
        """`client.publish()` under the rules; max_age None goes past them."""
        # SIB-SINGLE: a second task inside publish() would make the order a guess.
        if self._is_publishing:
            raise MQTTError(_BUSY, "ordered: publish() from one task at a time")
        self._is_publishing = True
        try:
            # SIB-RELIABILITY: one QoS, above 0.  SIB-NOEXC: nothing expires.
            if not qos or max_age or 0 < self._qos != qos:
                raise ValueError("ordered: one QoS, 1 or 2, for all, and no max_age")
            packet_id = client.publish(topic, msg, retain, qos, max_age=None)
            self._qos = qos
            return packet_id
        finally:
            self._is_publishing = False
