"""A store that outlives its client: a reset without flash.

It has the face of the library's stores and is written apart from them, so that
recovery is tested without a journal.  Runs under CPython and MicroPython.
"""


class KeepingStore:
    """Hand it to the next client to give it what the one before left."""

    is_deferred = False

    def __init__(self):
        self.kept = []  # [slot, packet id, qos, packet, has PUBREC, maybe sent]
        self.held = []
        self.last_id = 0  # where the packet ids go on
        self.is_clean = False  # does the session end with its connection?
        self.before_put = None  # called first thing in put()
        self.before_commit = None

    def open(self, client_id, slots, slot_bytes, held_slots):
        self.slots = slots

    def recover(self, session):
        session.restore_last_id(self.last_id)
        self.renumber()
        for slot, entry in enumerate(self.kept):
            session.restore(slot, entry[1], entry[2], entry[4], entry[5])
        for packet_id in self.held:
            session.restore_held(packet_id)
        session.restore_clean(self.is_clean)

    def renumber(self):
        """Let the slots be those of the order in which the messages came."""
        for slot, entry in enumerate(self.kept):
            entry[0] = slot

    def put(self, slot, packet_id, qos, buf, n, maybe_sent):
        if self.before_put:
            self.before_put()
        if len(self.kept) == self.slots:
            return False
        self.kept.append([slot, packet_id, qos, bytes(buf[:n]), False, maybe_sent])
        return True

    def get(self, slot, buf):
        packet = self._entry(slot)[3]
        for i in range(len(packet)):
            buf[i] = packet[i]
        return len(packet)

    def pubrec(self, slot):
        self._entry(slot)[4] = True

    def remove(self, slot):
        self.kept.remove(self._entry(slot))

    def hold(self, packet_id):
        if packet_id not in self.held:
            self.held.append(packet_id)

    def release(self, packet_id):
        if packet_id in self.held:
            self.held.remove(packet_id)

    def online(self):
        for entry in self.kept:
            entry[5] = True

    def renew(self, is_clean):
        self.is_clean = is_clean
        self.held = []
        for entry in self.kept:
            entry[4] = entry[5] = False

    def commit(self):
        if self.before_commit:
            self.before_commit()

    def sync(self):
        pass

    def clear(self):
        self.kept = []
        self.held = []

    def _entry(self, slot):
        for entry in self.kept:
            if entry[0] == slot:
                return entry
        raise ValueError("slot %d is empty" % slot)
