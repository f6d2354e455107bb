"""Topic aliases: topics that the broker knows by a number, on this connection.

Loaded by `client.v5.topic_aliases` only.  MQTT 5 §3.3.2.3.4.
"""

from micropython import heap_lock, heap_unlock


class Aliases:
    """The first `most` topics that are asked for; made anew for each connection."""

    def __init__(self, most):
        # MQTT-3.3.2-9, MQTT-3.2.2-17: 1 up to what both sides want.
        self._topics = [None] * most
        self._count = 0

    def shorten(self, protocol, msg, flags, packet_id):
        """What `protocol` is about to write is this message, which it has just accepted:
        write it with an alias, if it may have one.  What is kept has none.  Entered with
        the heap locked, which it unlocks."""
        heap_unlock()
        topic = protocol._checked
        if topic is protocol:
            return  # one that may change
        k = 0
        while k < self._count and self._topics[k] != topic:
            k += 1
        is_known = k < self._count
        room = min(protocol._size, protocol._most_bytes) - protocol.end
        if is_known:
            room += len(topic)
        if room < 5 or k == len(self._topics):
            return
        protocol._alias = k + 1
        if is_known:
            protocol._topic_end = 4
        else:
            self._topics[k] = topic
            self._count = k + 1
        buf = protocol._tx
        n = protocol._length_of(msg, flags)
        heap_lock()
        n = protocol._encode(buf, n, b"" if is_known else topic, msg, flags, packet_id)
        protocol.end = protocol.left = n
        protocol.out = buf
        protocol._topic_end = len(topic) + 4
        protocol._alias = 0
