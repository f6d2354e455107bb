"""Received QoS 2 packet ids that wait for their PUBREL, kept as sets: a bit for each id.

Brokers count their ids up, over messages of all QoS, so a burst of hundreds takes some ten
sets, whatever of it is QoS 2.  Knows nothing of packets; what has to survive a reset goes to
the store.  A store may have a `Held` of its own, as a journal has: see `runs`.  MQTT 5
§4.3.3 (receiver).
"""

from time import ticks_diff

from micropython import const

_IDS = const(30)  # of a set: a small integer has no more bits on a 32-bit port
_LEAST_SETS = const(16)


class Held:
    """Up to `most` ids, of which `count` are here.  There are sets for all of them if every
    second id of the broker is one; `places` ids have one, however they lie.

    A set is (first id // 30, its ids as bits, ticks when it last grew), three numbers of
    `sets`; the first `end` numbers count, the oldest set first.  `store` is told what is
    released.
    """

    def __init__(self, most, store=None):
        self._store = store
        self._most = most
        self.places = min(most, max(_LEAST_SETS, most * 2 // _IDS + 2))
        self.sets = [0] * (3 * self.places)
        self.end = 0
        self.count = 0

    def find(self, packet_id):
        """-> place of the id's set, -1 if the id is not held."""
        k = self._place(packet_id // _IDS)
        return k if k >= 0 and self.sets[k + 1] >> packet_id % _IDS & 1 else -1

    def _place(self, number):
        # The newest first: it is mostly that one.
        sets = self.sets
        k = self.end - 3
        while k >= 0 and sets[k] != number:
            k -= 3
        return k

    def has_room(self, packet_id):
        """May this id, which is not held, be added?"""
        return self.count < self._most and (
            self.end < len(self.sets) or self._place(packet_id // _IDS) >= 0
        )

    def add(self, packet_id, now):
        """Hold an id for which there is room; the store's record is the caller's."""
        sets = self.sets
        k = self._place(packet_id // _IDS)
        if k < 0:
            k = self.end
            self.end = k + 3
            sets[k] = packet_id // _IDS
            sets[k + 1] = 0
        sets[k + 1] |= 1 << packet_id % _IDS
        sets[k + 2] = now
        self.count += 1

    def remove(self, packet_id):
        """MQTT-4.3.3-12: from now on the id is a new message -> True, unless there is no room
        for what is left; an unknown id changes nothing."""
        k = self.find(packet_id)
        if k < 0:
            return True
        if self._store:
            self._store.release(packet_id)  # if it raises, the id is still held
        sets = self.sets
        sets[k + 1] ^= 1 << packet_id % _IDS
        self.count -= 1
        if not sets[k + 1]:
            self.end -= 3
            while k < self.end:
                sets[k] = sets[k + 3]
                k += 1
        return True

    def clear(self):
        """All ids are new ones: a new session of the broker; the store is told by another."""
        self.end = self.count = 0

    def expires_in(self, now, held_ms):
        """RT-AWAITREL-T: ticks until the oldest set has waited `held_ms` since it grew."""
        return held_ms - ticks_diff(now, self.sets[2])

    def expire(self):
        """Forget that set."""
        packet_id = self.sets[0] * _IDS
        for _ in range(_IDS):
            self.remove(packet_id)
            packet_id += 1
