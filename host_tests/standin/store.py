"""A store that outlives its client: a reset without flash.

It has the methods that the core asks of a store, and is written apart from the journal, so
that recovery is tested without one.  Runs under CPython and MicroPython.
"""

_PUBACK, _PUBREC, _PUBREL, _PUBCOMP = 0x40, 0x50, 0x62, 0x70
_CONNACK, _PUBLISH = 0x20, 0x30
_AGAIN = 8


class KeepingStore:
    """Hand it to the next client to give it what the one before left."""

    def __init__(self):
        self.kept = []  # [what it waits for, packet id, packet, maybe sent], in order
        self.held = []
        self.last_id = 0  # where the packet ids go on
        self.is_clean = False  # does the session end with its connection?
        self.slots = 0  # messages that find room
        self.before_put = None  # called first thing in put()
        self.before_commit = None
        self._fetched = 0  # of the messages that are kept, how many the client has in RAM
        self._again = []  # ids of those that an earlier life may have sent

    def open(self, client_id, level, buffer_size, most, hold, held, ring_bytes):
        self.slots = most
        self._fetched = 0
        for packet_id in self.held:
            hold(packet_id)
        self._again = [entry[1] for entry in self.kept if entry[3]]
        return len(self.kept), len(self._again), self.last_id, self.is_clean

    def put(self, ring, at, n, is_online, is_behind):
        if self.before_put:
            self.before_put()
        if len(self.kept) >= self.slots:
            return False
        self.last_id = ring[at + 3] << 8 | ring[at + 4]
        self.kept.append([ring[at], self.last_id, bytes(ring[at + 5 : at + n]), is_online])
        if not is_behind:
            self._fetched = len(self.kept)
        return True

    def fetch(self, ring, at):
        state, packet_id, packet, _ = self.kept[self._fetched]
        self._fetched += 1
        n = len(packet)
        state |= _AGAIN * (packet_id in self._again)
        head = (state, n >> 8, n & 255, packet_id >> 8, packet_id & 255)
        for byte in bytes(head) + packet:
            ring[at] = byte
            at += 1
        return n + 5

    def note(self, first, packet_id):
        if first == _PUBLISH:
            if packet_id not in self.held:
                self.held.append(packet_id)
        elif first == _PUBREL:
            if packet_id in self.held:
                self.held.remove(packet_id)
        elif first == _CONNACK:
            for entry in self.kept:
                entry[3] = True
        else:
            self._answer(first, packet_id)

    def _answer(self, first, packet_id):
        for k in range(self._fetched):
            entry = self.kept[k]
            if entry[1] == packet_id:
                if first == _PUBREC:
                    entry[0] = _PUBCOMP
                else:
                    del self.kept[k]
                    self._fetched -= 1
                break

    def renew(self, is_clean):
        self.is_clean = is_clean
        self.held = []
        self._again = []
        for entry in self.kept:
            entry[3] = False
            if entry[0] == _PUBCOMP:
                entry[0] = _PUBREC

    def commit(self):
        if self.before_commit:
            self.before_commit()

    tidy = commit

    def sync(self):
        pass
