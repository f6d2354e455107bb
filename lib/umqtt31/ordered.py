"""`ordered=True`: one message at a time, so that they arrive in the order of publish().

Loaded only by a client with that option, which also makes its window 1.
"""

from micropython import const

from .errors import MQTTError

_BUSY = const(263)
_QOS = const(0x03)


class Ordered:
    """The rules of SIB for one client."""

    def __init__(self):
        self._is_publishing = False

    def publish(self, client, topic, msg, retain, qos, max_age):
        """`client.publish()` under the rules; max_age None goes past them."""
        # SIB-SINGLE: a second task inside publish() would make the order a guess.
        if self._is_publishing:
            raise MQTTError(_BUSY, "ordered: publish() from one task at a time")
        self._is_publishing = True
        try:
            # SIB-RELIABILITY: one QoS, above 0.  SIB-NOEXC: nothing expires.
            session = client._session
            newest = session.order[session.count - 1]
            other = session.flags[newest] & _QOS if session.count else qos
            if not qos or max_age or other != qos:
                raise ValueError("ordered: one QoS, 1 or 2, for all, and no max_age")
            return client.publish(topic, msg, retain, qos, max_age=None)
        finally:
            self._is_publishing = False
