"""A store that goes on in RAM when the journal stops.

Flash wears out: then a journal refuses each message and each connection.  Here it is a
fault to report, and no end: what is new waits in RAM, what the journal still holds is read
from it and goes out, and nothing is written any more.  A reset forgets what waits in RAM
and finds again what the journal held.  Needs nothing else of the node.
"""

from struct import pack_into

from umqtt31 import MQTTError

_MOST = 20  # messages in RAM
_TRIES = 3  # to read what the flash does not give
# The place of each of these methods in `_calls`.
_PUBREC, _HOLD, _RELEASE, _RENEW, _ONLINE, _COMMIT, _SYNC, _CLEAR = range(8)
_CALLS = ("pubrec", "hold", "release", "renew", "online", "commit", "sync", "clear")
# With the heap locked the error of the journal is one of memory, and a tuple that stands
# in `except` could not be made.
_FAILED = (OSError, MemoryError)


class Fallback:
    """A store as umqtt31's RamStore, around `journal`.

    `is_done`: all that the journal held went out in an earlier life, though it could not
    say so: it is cleared, or left if that fails.  `has_failed`: it takes nothing any more.
    """

    level = 3  # of the protocol; the client sets it before open()

    def __init__(self, journal, is_done=False):
        self.Held = journal.Held
        self.is_deferred = journal.is_deferred
        self.has_failed = False
        self._is_done = is_done
        self._slots = []  # whose message is in the buffer of the same place; -1: nobody's
        self._buffers = []
        self._journal = journal
        self._calls = [getattr(journal, name) for name in _CALLS]  # that allocates

    def open(self, client_id, slots, slot_bytes, held_slots):
        """As RamStore.  Raises MQTTError (JOURNAL) where the journal is another's or has
        another layout; flash that cannot be read or cleared is a failure."""
        self._slot_bytes = slot_bytes
        self._format = "%ds" % slot_bytes
        self._journal.level = self.level
        try:
            self._journal.open(client_id, slots, slot_bytes, held_slots)
        except OSError as error:
            if isinstance(error, MQTTError):
                raise
            self.has_failed = True
        if self._is_done:
            self.clear()
        if self.has_failed:
            self._journal = self._calls = None  # and their memory is free

    def recover(self, session):
        """As RamStore."""
        if self._journal:
            self._journal.recover(session)

    @property
    def in_ram(self):
        """How many messages wait in RAM."""
        return len(self._slots) - self._slots.count(-1)

    @property
    def corrupt_pages(self):
        """As Journal."""
        return self._journal.corrupt_pages if self._journal else 0

    def bad_blocks(self):
        """As Journal."""
        return self._journal.bad_blocks() if self._journal else 0

    # --- messages -------------------------------------------------------------------------

    def put(self, slot, packet_id, qos, buf, n, maybe_sent):
        """As RamStore.  In RAM there is no room while the heap is locked, but where a message
        was before."""
        if not self.has_failed:
            try:
                return self._journal.put(slot, packet_id, qos, buf, n, maybe_sent)
            except _FAILED:
                self.has_failed = True
        place = self._find(-1)
        if place < 0:
            place = len(self._slots)
            if not self._has_place(place):
                return False
        pack_into(self._format, self._buffers[place], 0, buf)
        self._slots[place] = slot
        return True

    def _has_place(self, place):
        # One more, behind all others.
        if place == _MOST:
            return False
        try:
            self._buffers.append(bytearray(self._slot_bytes))
            self._slots.append(-1)
        except MemoryError:
            return False
        return True

    def _find(self, slot):
        # -> the first place of this slot, -1 for none.
        for place in range(len(self._slots)):
            if self._slots[place] == slot:
                return place
        return -1

    def get(self, slot, buf):
        """As RamStore; what cannot be read is lost."""
        place = self._find(slot)
        if place >= 0:
            pack_into(self._format, buf, 0, self._buffers[place])
            return 1
        for _ in range(_TRIES):
            try:
                return self._journal.get(slot, buf)
            except _FAILED:
                self.has_failed = True
        return 0

    def remove(self, slot):
        """As RamStore."""
        place = self._find(slot)
        if place >= 0:
            self._slots[place] = -1
        else:
            self._journal.remove(slot)

    # --- what the journal notes as long as it can -------------------------------------------

    def pubrec(self, slot):
        """As RamStore."""
        self._note(_PUBREC, slot)

    def hold(self, packet_id):
        """As RamStore."""
        self._note(_HOLD, packet_id)

    def release(self, packet_id):
        """As RamStore."""
        self._note(_RELEASE, packet_id)

    def renew(self, is_clean):
        """As RamStore."""
        self._note(_RENEW, is_clean)

    def online(self):
        """As RamStore."""
        self._do(_ONLINE)

    def commit(self):
        """As RamStore."""
        self._do(_COMMIT)

    def sync(self):
        """As RamStore."""
        self._do(_SYNC)

    def clear(self):
        """As RamStore."""
        self._do(_CLEAR)

    def _note(self, call, about):
        if not self.has_failed:
            try:
                self._calls[call](about)
            except _FAILED:
                self.has_failed = True

    def _do(self, call):
        if not self.has_failed:
            try:
                self._calls[call]()
            except _FAILED:
                self.has_failed = True
