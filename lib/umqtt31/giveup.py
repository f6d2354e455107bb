"""Which message is given up, and when: overflow policies and the clean session.

A page of `session`'s own book, loaded only by a client that has a policy, or when a clean
session begins.  What is in flight is never given up for want of room.
"""

from micropython import const

_OLD = const(0x04)
_CLOSED = const(258)


def _find_oldest(session, topic):
    k = session.inflight()
    return k if k < session.count else -1


def _find_same_topic(session, topic):
    for k in range(session.inflight(), session.count):
        if _has_topic(session.packet(k), topic):
            return k
    return -1


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


# By the name of the policy: function(session, topic) -> index of the waiting message to
# give up, -1 for none.
POLICIES = {"drop_oldest": _find_oldest, "latest": _find_same_topic}


def start_over(session, give_up):
    """31-3.1-CLEAN: the session ends on this side too.  `give_up(k, reason)` is called for
    what is in flight or from an earlier life; what this life accepted and never sent is
    not part of the broker's session and stays queued."""
    k = 0
    flight = session.inflight()
    while k < session.count:
        if flight or session.flags(k) & _OLD:
            flight -= flight > 0
            give_up(k, _CLOSED)
        else:
            k += 1
    if not session.count:
        session.store.clear()
