"""Recovery: how a store hands a new session what an earlier life left.

A page of `protocol`'s own book, loaded only with a store that can remember; used once, by
the client's constructor.
"""

from micropython import const

_OWE_PUBREL = const(0x60)
_WAS_SENT = const(0x01)
_RELEASED = const(0x02)
_OLD = const(0x04)
_MAYBE = const(0x80)


class Recovery:
    """What `store.recover()` calls; all of it ends in `protocol`, which is new."""

    def __init__(self, protocol, now):
        self._protocol = protocol
        self._now = now

    def restore(self, slot, packet_id, qos, has_pubrec, maybe_sent):
        """Take back a message; called oldest first."""
        protocol = self._protocol
        if maybe_sent and not qos:
            protocol.store.remove(slot)  # 31-4.1-Q0: it may have gone out, so never again
            return
        waits = 0x30 + (qos << 4) | _OLD if qos else _OLD
        if has_pubrec:
            waits = _OWE_PUBREL | _OLD | _RELEASED
        if maybe_sent:
            waits |= _MAYBE
        # What was done before it may be back too, so it may be beyond the window.
        order = protocol._order
        order.remove(slot)
        order.insert(protocol.count, slot)
        protocol._ids[slot] = packet_id
        protocol._waits[slot] = waits
        protocol.count += 1
        protocol.unsent += 1
        if has_pubrec or maybe_sent and protocol.count <= protocol.window:
            for k in order[: protocol.count]:
                protocol._waits[k] |= _WAS_SENT  # all up to here is in flight

    def restore_held(self, packet_id):
        """Take back a received QoS 2 id; called oldest first."""
        self._protocol.held.add(packet_id, self._now)

    def restore_run(self, first, last):
        """Take back all received QoS 2 ids from `first` to `last`; called oldest run first."""
        self._protocol.held.restore(first, last, self._now)

    def restore_last_id(self, packet_id):
        """Go on with packet ids behind this one: the broker may hold older ones."""
        if packet_id:
            self._protocol.last_id = packet_id

    def restore_clean(self, is_clean):
        """Did the session before end with its connection?"""
        self._protocol.was_clean = is_clean
