"""`ordered=True`: one message at a time, so that they arrive in the order of publish().

Loaded only by a client with that option, which also makes its window 1.
"""

from micropython import const

from .errors import MQTTError

_BUSY = const(263)


class Ordered:
    """The rules of SIB for one client, of a new `protocol`; `accept` is its publish()."""

    def __init__(self, accept, protocol):
        protocol.is_ordered = True
        protocol.commit = protocol.store.sync  # MQTT-4.6-RM1: what is done stays so, too
        protocol._direct = 0  # each waits until the one before is recorded as done
        self._is_publishing = False
        # Of all messages, from the first one on, which an earlier life may have left.
        waits = protocol._waits[protocol._slot(protocol.count - 1)] & 0x70 if protocol.count else 0
        self._qos = waits and (1 if waits == 0x40 else 2)
        self._accept = accept

    def publish(self, topic, msg, retain=False, qos=0, max_age=0, properties=None):
        """`client.publish()` under the rules."""
        # SIB-SINGLE: a second task inside publish() would make the order a guess.
        if self._is_publishing:
            raise MQTTError(_BUSY, "ordered: publish() from one task at a time")
        self._is_publishing = True
        try:
            # SIB-RELIABILITY: one QoS, above 0.  SIB-NOEXC: nothing expires.
            if not qos or max_age or 0 < self._qos != qos:
                raise ValueError("ordered: one QoS, 1 or 2, for all, and no max_age")
            packet_id = self._accept(topic, msg, retain, qos, 0, properties)
            self._qos = qos
            return packet_id
        finally:
            self._is_publishing = False
