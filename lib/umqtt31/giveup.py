"""Which message is given up, and when: overflow policies and the clean session.

A page of `protocol`'s own book, loaded only by a client that has a policy, or when a clean
session begins.  What is in flight is never given up for want of room.
"""

from micropython import const

_OLD = const(0x04)
_CLOSED = const(258)


def _find_oldest(protocol, topic):
    k = protocol.inflight()
    return k if k < protocol.count else -1


def _find_same_topic(protocol, topic):
    k = protocol.inflight()
    if protocol.count - k > protocol.places():
        return -1  # more wait than have a place, as a window took them: one makes no room
    while k < protocol.count:
        if _has_topic(packet_of(protocol, protocol._slot(k)), topic):
            return k
        k += 1
    return -1


def packet_of(protocol, slot):
    """-> a buffer with the packet in `slot`, valid until the next one is accepted."""
    buf = protocol.buffer_of(slot)
    if protocol._is_putting:
        protocol.store.get(slot, buf)
    return buf


def _has_topic(buf, topic):
    # Is `topic` the topic of the whole PUBLISH in `buf`?
    pos = 1
    while buf[pos] & 128:
        pos += 1
    if buf[pos + 1] << 8 | buf[pos + 2] != len(topic):
        return False
    pos += 3
    for byte in topic:
        if byte != buf[pos]:
            return False
        pos += 1
    return True


# By the name of the policy: function(protocol, topic) -> index of the waiting message to
# give up, -1 for none.
POLICIES = {"drop_oldest": _find_oldest, "latest": _find_same_topic}


def start_over(protocol, give_up):
    """31-3.1-CLEAN: the session ends on this side too.  `give_up(k, reason)` is called for
    what is in flight or from an earlier life; what this life accepted and never sent is
    not part of the broker's session and stays queued."""
    k = 0
    flight = protocol.inflight()
    while k < protocol.count:
        if flight or protocol._waits[protocol._slot(k)] & _OLD:
            flight -= flight > 0
            give_up(k, _CLOSED)
        else:
            k += 1
    if not protocol.count:
        protocol.store.clear()
