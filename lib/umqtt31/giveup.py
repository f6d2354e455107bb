"""Which message is given up, and when: overflow policies and the clean session.

Loaded only by a client that has a policy, or messages when a clean session begins.
What is in flight is never given up for want of room.
"""

from micropython import const

_OLD = const(0x20)


def _find_oldest(session, topic, buf):
    return session.count - session.queued if session.queued else -1


def _find_same_topic(session, topic, buf):
    for k in range(session.count - session.queued, session.count):
        session.store.get(session.order[k], buf)
        if _has_topic(buf, topic):
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


# By the name of the policy: function(session, topic, buf) -> index of the waiting
# message to give up, -1 for none; `buf` is room for a packet.
POLICIES = {"drop_oldest": _find_oldest, "latest": _find_same_topic}


def find_old(session):
    """-> index of a message in flight or from an earlier life, -1 if none.

    Those end with a clean session; what this life accepted and never sent is not
    part of the broker's session and stays queued.
    """
    for k in range(session.count):
        if k < session.count - session.queued or session.state[session.order[k]] & _OLD:
            return k
    return -1
