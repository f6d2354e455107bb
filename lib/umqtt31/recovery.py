"""Recovery: how a store hands a new session what an earlier life left.

Loaded only with a store that can remember; used once, by the client's constructor.
"""

from micropython import const

_OWE_PUBREL = const(3)
_WAS_SENT = const(0x08)
_RELEASED = const(0x10)
_OLD = const(0x20)


class Recovery:
    """What `store.recover()` calls; all of it ends in `session`, which is new."""

    def __init__(self, session):
        self._session = session

    def restore(self, slot, packet_id, qos, has_pubrec, maybe_sent):
        """Take back a message; called oldest first."""
        session = self._session
        if maybe_sent and not qos:
            session.store.remove(slot)  # 31-4.1-Q0: it may have gone out, so never again
            return
        n = session.count
        session.order.remove(slot)
        session.order.insert(n, slot)
        session.count = n + 1
        session.ids[slot] = packet_id
        session.queued += 1
        state = qos | _OLD
        if maybe_sent or has_pubrec:
            # What was done before it may be back too, so it may be beyond the window.
            state |= _WAS_SENT
            if has_pubrec or n < session.window:
                session.queued = 0
                session.again = n + 1
        if has_pubrec:
            state = _OWE_PUBREL | _OLD | _WAS_SENT | _RELEASED
        session.state[slot] = state

    def restore_held(self, packet_id):
        """Take back a received QoS 2 id; called oldest first."""
        session = self._session
        session.held[session.held_count] = packet_id
        session.held_count += 1

    def restore_last_id(self, packet_id):
        """Go on with packet ids behind this one: the broker may hold older ones."""
        self._session.last_id = packet_id
