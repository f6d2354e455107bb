"""HeldIds: the received QoS 2 packet ids that wait for their PUBREL.

While an id is held, a PUBLISH with it is a repetition, whatever its DUP flag
says.  Bounded, oldest first; ticks and the store are handed in.  MQTT 5 §4.3.3,
receiver's side, which is MQTT 3.1's as well.
"""

from time import ticks_diff


class HeldIds:
    """At most `most` ids; `count` are held; `now` is their age after a reset."""

    def __init__(self, store, most, now):
        self._store = store
        self._ids = [0] * most
        self._when = [now] * most
        self.count = 0
        self.is_starved = False  # a message was refused for want of room

    def restore(self, packet_id):
        """Take back an id of an earlier life."""
        self._ids[self.count] = packet_id
        self.count += 1

    def has(self, packet_id):
        """MQTT-4.3.3-10: was this message handed over before?"""
        return packet_id in self._ids

    def has_room(self):
        """RT-AWAITREL: may one more be taken?  If not, it is remembered."""
        if self.count < len(self._ids):
            return True
        self.is_starved = True
        return False

    def add(self, packet_id, now):
        """The message was handed over; it waits for PUBREL."""
        self._ids[self.count] = packet_id
        self._when[self.count] = now
        self.count += 1
        self._store.hold(packet_id)

    def release(self, packet_id):
        """PUBREL came: the id is a new message from now on (MQTT-4.3.3-12).

        An unknown id changes nothing.
        """
        for k in range(self.count):
            if self._ids[k] == packet_id:
                self._remove(k)
                return

    def expires_in(self, now, timeout_ms, most):
        """Ticks until the oldest id has waited too long, `most` at most."""
        if not self.count:
            return most
        return min(most, timeout_ms - ticks_diff(now, self._when[0]))

    def expire(self, now, timeout_ms):
        """RT-AWAITREL-T: discard those that waited too long."""
        while self.expires_in(now, timeout_ms, 1) <= 0:
            self._remove(0)

    def clear(self):
        """The broker starts a new session: its ids begin anew."""
        while self.count:
            self._remove(0)
        self.is_starved = False

    def _remove(self, k):
        self._store.release(self._ids[k])
        self.count -= 1
        for i in range(k, self.count):
            self._ids[i] = self._ids[i + 1]
            self._when[i] = self._when[i + 1]
        self._ids[self.count] = 0
