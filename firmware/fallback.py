"""A store that goes on in RAM when the journal stops.

Flash wears out: then a journal refuses each message and each connection.  Here it is a
fault to report, and no end: what is new waits in RAM, what the journal still holds is read
from it and goes out, and nothing is written any more.  A reset forgets what waits in RAM
and finds again what the journal held.  Needs nothing else of the node.
"""

from umqtt31 import MQTTError

_PUBACK = 0x40
_PUBCOMP = 0x70
_MOST = 20  # messages in RAM
_TRIES = 3  # to read what the flash does not give
# With a locked heap the journal's error is a MemoryError, and a tuple inside `except` could
# not be made.
_FAILED = (OSError, MemoryError)


class Fallback:
    """A store as umqtt31 asks for one, around `journal`: each method as the store's contract says.

    `is_done`: all that the journal held went out in an earlier life, though it could not
    say so: it is told so, and left as it is if that fails.  `has_failed`: it takes nothing
    any more.
    """

    def __init__(self, journal, is_done=False):
        self.has_failed = False
        self._is_done = is_done
        self._ids = [0] * _MOST  # of messages in RAM alone; 0: free
        # Those of them that found no room in the client's queue, from _first on.  The list keeps
        # its length, as a shorter one may need new memory, which a locked heap does not give.
        self._more = [b""] * _MOST
        self._first = self._count = 0
        self._behind = 0  # messages that are still to be read from the journal
        self._journal = journal

    def open(self, client_id, level, buffer_size, most, hold, held, ring_bytes):
        """As the store's contract says.  Raises MQTTError (JOURNAL) where the journal is
        another's or has another layout; flash that cannot be read or written is a failure."""
        journal = self._journal
        found = 0, 0, 0, False
        try:
            found = journal.open(client_id, level, buffer_size, most, hold, held, ring_bytes)
        except OSError as error:
            if isinstance(error, MQTTError):
                raise
            self.has_failed = True
        if self._is_done:
            self._forget(found[0], bytearray(2 * buffer_size + 5))
            found = (0, 0) + found[2:]
        self._behind = found[0]
        if self.has_failed:
            self._journal = None  # frees its memory
        return found

    def _forget(self, entries, buf):
        try:
            for _ in range(entries):
                self._journal.fetch(buf, 0)
                self._journal.note(_PUBACK, buf[3] << 8 | buf[4])
            if entries:
                self._journal.sync()
        except _FAILED:
            self.has_failed = True

    @property
    def in_ram(self):
        """How many messages wait in RAM alone."""
        return _MOST - self._ids.count(0)

    @property
    def corrupt_pages(self):
        return self._journal.corrupt_pages if self._journal else 0

    def bad_blocks(self):
        return self._journal.bad_blocks() if self._journal else 0

    def put(self, ring, at, n, is_online, is_behind):
        if not self.has_failed:
            try:
                if not self._journal.put(ring, at, n, is_online, is_behind):
                    return False
                self._behind += is_behind
                return True
            except _FAILED:
                self.has_failed = True
        if 0 not in self._ids:
            return False
        if is_behind:
            try:
                self._more[(self._first + self._count) % _MOST] = bytes(ring[at : at + n])
            except MemoryError:  # no memory while the heap is locked
                return False
            self._count += 1
        self._ids[self._ids.index(0)] = ring[at + 3] << 8 | ring[at + 4]
        return True

    def fetch(self, ring, at):
        """As the store's contract says; what cannot be read is lost."""
        if not self._behind:
            entry = self._more[self._first]
            self._more[self._first] = b""
            self._first = (self._first + 1) % _MOST
            self._count -= 1
            for byte in entry:
                ring[at] = byte
                at += 1
            return len(entry)
        self._behind -= 1
        for _ in range(_TRIES):
            try:
                return self._journal.fetch(ring, at)
            except _FAILED:
                self.has_failed = True
        for k in range(at, at + 5):
            ring[k] = 0
        return 5

    def note(self, first, packet_id):
        # Making a tuple would allocate.
        if (first == _PUBACK or first == _PUBCOMP) and packet_id in self._ids:
            self._ids[self._ids.index(packet_id)] = 0
        elif not self.has_failed:
            try:
                self._journal.note(first, packet_id)
            except _FAILED:
                self.has_failed = True

    def renew(self, is_clean):
        if not self.has_failed:
            try:
                self._journal.renew(is_clean)
            except _FAILED:
                self.has_failed = True

    def commit(self):
        if not self.has_failed:
            try:
                self._journal.commit()
            except _FAILED:
                self.has_failed = True

    def tidy(self):
        if not self.has_failed:
            try:
                self._journal.tidy()
            except _FAILED:
                self.has_failed = True

    def sync(self):
        if not self.has_failed:
            try:
                self._journal.sync()
            except _FAILED:
                self.has_failed = True
