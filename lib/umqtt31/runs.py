"""Received QoS 2 packet ids as runs of consecutive ids: what `held` is for a journal.

Each block of a journal begins with a title that says all of them, so they have to be short.
A burst of hundreds takes one run if all of it is QoS 2.  MQTT 5 §4.3.3 (receiver).
"""

from time import ticks_diff

from micropython import const

_RUNS = const(7)  # as many as a title has room for, less one


class Runs:
    """As `held.Held`, in up to 8 runs.

    A run is (first id, last id, ticks when it last grew), three numbers of `runs`; the
    first `end` numbers count, the oldest run first.  `store` is told what is released.
    """

    def __init__(self, most, store=None):
        self._store = store
        self._most = most
        # One more, so that one may always be split.
        self.places = min(most, _RUNS)
        self.runs = [0] * (3 * self.places + 3)
        self.end = 0
        self.count = 0

    def find(self, packet_id):
        """-> place of the id's run, -1 if it is not held."""
        runs = self.runs
        k = 0
        while k < self.end:
            if runs[k] <= packet_id <= runs[k + 1]:
                return k
            k += 3
        return -1

    def has_room(self, packet_id):
        """May this id, which is not held, be added?"""
        # A run with the id before it ends there, and would grow.
        return self.count < self._most and (
            self.end + 3 < len(self.runs) or self.find(packet_id - 1) >= 0
        )

    def add(self, packet_id, now):
        """Hold an id for which there is room; the store's record is the caller's."""
        runs = self.runs
        k = self.find(packet_id - 1)
        if k < 0:
            k = self.end
            self.end = k + 3
            runs[k] = packet_id
        runs[k + 1] = packet_id
        runs[k + 2] = now
        self.count += 1

    def restore(self, first, last, now):
        """A run of an earlier life, behind those that are here."""
        k = self.end
        self.runs[k] = first
        self.runs[k + 1] = last
        self.runs[k + 2] = now
        self.end = k + 3
        self.count += last - first + 1

    def remove(self, packet_id):
        """MQTT-4.3.3-12: from now on the id is a new message -> False if that takes a
        run more than there is room for; an unknown id changes nothing."""
        k = self.find(packet_id)
        if k < 0:
            return True
        runs = self.runs
        is_inside = runs[k] < packet_id < runs[k + 1]
        if is_inside and self.end == len(runs):
            return False
        if self._store:
            self._store.release(packet_id)  # if it raises, the id is still held
        if is_inside:
            self._split(k, packet_id)
        elif runs[k] < packet_id:
            runs[k + 1] = packet_id - 1
        else:
            runs[k] = packet_id + 1
            if runs[k + 1] == packet_id:
                self._close(k)
        self.count -= 1
        return True

    def _split(self, k, packet_id):
        runs = self.runs
        end = self.end
        for i in range(3):
            runs[end + i] = runs[k + i]
        runs[end] = packet_id + 1
        runs[k + 1] = packet_id - 1
        self.end = end + 3

    def _close(self, k):
        # The run at `k` is empty.
        runs = self.runs
        self.end -= 3
        while k < self.end:
            runs[k] = runs[k + 3]
            k += 1

    def clear(self):
        """All ids are new ones: a new session of the broker; the store is told by another."""
        self.end = self.count = 0

    def expires_in(self, now, held_ms):
        """RT-AWAITREL-T: ticks until the run that grew first has waited `held_ms`."""
        return held_ms - ticks_diff(now, self.runs[2])

    def expire(self):
        """Forget that run."""
        while self.count and self.end:
            packet_id = self.runs[0]
            is_last = packet_id == self.runs[1]
            self.remove(packet_id)
            if is_last:
                break
