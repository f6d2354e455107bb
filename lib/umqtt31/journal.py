"""The store on flash: what was accepted survives a pulled plug, at any instruction.

Theory of operation.  A message is an entry in a log; what happens to it later is a
note behind it: PUBREC came, it is done, a connection opened.  A received QoS 2 id is
an entry without a packet.  `Ring` keeps the log, in groups that count as a whole or
not at all: `commit()` programs what a packet waits for, and "done" goes along with
the next group.  RAM keeps 13 bytes for an entry; its packet is read from flash.
When fewer than two blocks are spare, the entries in the oldest block that still
count are copied to the end of the log, in groups as they were, and the block is
given up.  After a reset the log is read from its start, as the records came.
docs/journal-format.md has every byte and the reasons.
"""

from array import array
from struct import pack_into

from micropython import const

from .errors import JOURNAL, MQTTError
from .ring import Ring, u32

# An entry: kind with QoS and flags, number, packet id, length, packet.
_ENTRY = const(0x80)
_QOS = const(0x03)
_HELD = const(0x04)
_PUBREC = const(0x08)
_SENT = const(0x10)
_ENTRY_BYTES = const(9)
# A note: kind, number of the entry that is meant.
_NOTE_PUBREC = const(1)
_NOTE_REMOVE = const(2)
_NOTE_ONLINE = const(3)
_NOTE_CLEAR = const(4)
_NOTE_BYTES = const(5)
_END = const(0xFF)

_PENDING = const(0xFFFF)  # the page of an entry whose group is still in RAM
_SPARE_BLOCKS = const(2)


class Journal:
    """A store as `ram.RamStore`, on a block device with MicroPython's extended
    protocol: esp32.Partition, rp2.Flash, FileBlockDevice or your own.

    `program_bytes`: what the flash programs at once.  `erase_bytes`: what is erased
    at once, the device's block or a multiple of it.  `cell_bytes`: groups begin at
    multiples of it, so that several share a page, which is programmed again with
    more in it; where the flash forbids that (ECC), give the value of
    `program_bytes`.  `group_commit`: the messages of one poll share a program
    operation, and are durable when they are first sent instead of when `publish()`
    returns.  `erase_foreign`: erase what another client, format or layout left,
    instead of refusing it.  Raises ValueError.
    """

    corrupt_pages = 0  # that recovery found and passed over; a cut leaves one, too

    def __init__(
        self,
        block_device,
        *,
        program_bytes=256,
        erase_bytes=4096,
        cell_bytes=64,
        group_commit=False,
        erase_foreign=False,
    ):
        self._ring = Ring(block_device, program_bytes, min(cell_bytes, program_bytes), erase_bytes)
        self.is_deferred = group_commit
        self._erase_foreign = erase_foreign

    # --- opening and recovery ---------------------------------------------------

    def open(self, client_id, slots, slot_bytes, held_slots):
        """As RamStore; then read the log and, after a cut, finish reclaiming.

        Raises ValueError if the device is too small for these sizes; MQTTError
        (JOURNAL) if it holds another client's journal or more than fits, unchanged;
        OSError if it cannot be read.
        """
        self._set_capacity(client_id, slot_bytes, held_slots)
        self._slots = slots
        self._format = "%ds" % slot_bytes
        self._packet = bytearray(slot_bytes)
        none = [0] * (slots + held_slots)
        tables = [bytearray(none)] + [array(code, none) for code in "IHHHH"]
        # A kind of 0 means free; the number gives the order; the group begins in the
        # page; the offset of the packet counts from the start of that page.
        self._kind, self._number, self._packet_id = tables[:3]
        self._length, self._page, self._offset = tables[3:]
        self._tables = tables
        self._next_number = self._used = 0
        self._is_due = self._is_reclaiming = False
        ring = self._ring
        try:
            self.corrupt_pages = ring.recover(self._replay)
        except MQTTError:
            if not self._erase_foreign:
                raise
            for block in range(ring.blocks):
                ring.erase(block)
            self.corrupt_pages = ring.recover(self._replay)
        self._settle(slots + held_slots)
        self._is_clear = not any(self._kind)
        self._keep_spare()

    def _set_capacity(self, client_id, slot_bytes, held_slots):
        # Entries are counted as if each were alone in its pages.  With this limit
        # reclaiming never gets stuck: docs/journal-format.md.
        ring = self._ring
        least = ring.open(client_id, _ENTRY_BYTES + slot_bytes)
        most = ring.block_pages - least
        if least > most:
            raise ValueError("packets of %d bytes need larger erase_bytes" % slot_bytes)
        self._capacity = (ring.blocks - 3) * most - held_slots
        if self._capacity < least or ring.blocks > 255 or ring.pages >= _PENDING:
            least = 3 - (-held_slots - least) // most
            raise ValueError("journal needs %d to 255 blocks, not %d" % (least, ring.blocks))

    def _replay(self, buf, i, end, page):
        # Take in the records of a group.
        while i < end and buf[i] != _END:
            kind = buf[i]
            number = u32(buf, i + 1)
            entry = self._find(number)
            if kind & _ENTRY:
                if entry < 0:
                    entry = self._take_free(kind & _HELD)
                i += _ENTRY_BYTES
                self._kind[entry] = kind
                self._number[entry] = number
                self._packet_id[entry] = buf[i - 4] | buf[i - 3] << 8
                self._length[entry] = buf[i - 2] | buf[i - 1] << 8
                self._page[entry] = page
                self._offset[entry] = i
                self._next_number = max(self._next_number, number + 1)
                i += self._length[entry]
                continue
            i += _NOTE_BYTES
            if kind == _NOTE_ONLINE:
                self._mark_sent()
            elif kind == _NOTE_CLEAR:
                self._forget()
            elif entry >= 0:
                if kind == _NOTE_PUBREC:
                    self._kind[entry] |= _PUBREC
                else:
                    self._kind[entry] = 0

    def _take_free(self, held):
        # A place for an entry; there may have been more in an earlier life.
        entry = self._free(held)
        if entry < 0:
            entry = len(self._kind)
            for table in self._tables:
                table.append(0)
        return entry

    def _settle(self, size):
        # Bring all entries that are left into the places that there are.
        for extra in range(size, len(self._kind)):
            kind = self._kind[extra]
            if kind:
                entry = self._free(kind & _HELD)
                if not 0 <= entry < size:
                    _refuse("max_awaiting_rel" if kind & _HELD else "max_mqueue_len")
                for table in self._tables:
                    table[entry] = table[extra]
                self._kind[extra] = 0
        for entry in range(size):
            if self._kind[entry]:
                self._used += self._cost(entry)
                if self._length[entry] > len(self._packet):
                    _refuse("buffer_size to %d" % self._length[entry])

    def recover(self, session):
        """As RamStore; and `session.restore_last_id(id)`, the newest id recorded."""
        for i in sorted(range(len(self._kind)), key=lambda i: self._number[i]):
            kind = self._kind[i]
            if kind & _HELD:
                session.restore_held(self._packet_id[i])
            elif kind:
                has_pubrec = bool(kind & _PUBREC)
                session.restore(i, self._packet_id[i], kind & _QOS, has_pubrec, bool(kind & _SENT))
        session.restore_last_id(self._ring.last_id)

    # --- the face of a store ------------------------------------------------------

    def put(self, slot, packet_id, qos, buf, n, maybe_sent):
        """As RamStore.  Without `group_commit` it is durable on return."""
        self._length[slot] = n
        cost = self._cost(slot)
        if self._used + cost > self._capacity:
            return False
        self._used += cost
        try:
            self._add(slot, _ENTRY | qos | (_SENT if maybe_sent else 0), packet_id, buf)
            if packet_id:
                self._ring.last_id = packet_id
            if not self.is_deferred:
                self.commit()
        except BaseException:
            self.remove(slot)
            raise
        return True

    def get(self, slot, buf):
        """As RamStore; reads from flash."""
        self._load(slot)
        pack_into(self._format, buf, 0, self._packet)
        return self._length[slot]

    def pubrec(self, slot):
        """As RamStore; durable after `commit()`."""
        self._kind[slot] |= _PUBREC
        self._note(_NOTE_PUBREC, slot)
        self._is_due = True

    def remove(self, slot):
        """As RamStore; goes along with what is programmed next."""
        self._used -= self._cost(slot)
        self._kind[slot] = 0
        self._note(_NOTE_REMOVE, slot)

    def hold(self, packet_id):
        """As RamStore; durable after `commit()`."""
        entry = self._free(_HELD)
        self._length[entry] = 0
        self._add(entry, _ENTRY | _HELD | _SENT, packet_id, self._packet)

    def release(self, packet_id):
        """As RamStore; durable after `commit()`."""
        for i in range(self._slots, len(self._kind)):
            if self._kind[i] and self._packet_id[i] == packet_id:
                self._kind[i] = 0
                self._note(_NOTE_REMOVE, i)
                self._is_due = True

    def online(self):
        """As RamStore; durable after `commit()`."""
        if self._mark_sent():
            self._note(_NOTE_ONLINE, 0)
            self._is_due = True

    def commit(self):
        """As RamStore; programs only if a packet waits for it."""
        if self._is_due:
            self._program()

    def sync(self):
        """As RamStore."""
        if not self._ring.is_empty():
            self._program()

    def clear(self):
        """As RamStore; durable on return."""
        if not self._is_clear:
            self._forget()
            self._note(_NOTE_CLEAR, 0)
            self._program()
            self._is_clear = True

    # --- entries and notes ----------------------------------------------------------

    def _free(self, held):
        first = self._slots if held else 0
        for i in range(first, len(self._kind) if held else self._slots):
            if not self._kind[i]:
                return i
        return -1

    def _find(self, number):
        for i in range(len(self._kind)):
            if self._kind[i] and self._number[i] == number:
                return i
        return -1

    def _mark_sent(self):
        changed = False
        for i in range(len(self._kind)):
            kind = self._kind[i]
            if kind and not kind & _SENT:
                self._kind[i] = kind | _SENT
                changed = True
        return changed

    def _forget(self):
        for i in range(len(self._kind)):
            self._kind[i] = 0
        self._used = 0

    def _cost(self, entry):
        # Pages of a message alone; those of held ids are set aside from the start.
        if self._kind[entry] & _HELD:
            return 0
        return self._ring.cost(_ENTRY_BYTES + self._length[entry])

    def _add(self, entry, kind, packet_id, buf):
        # Reclaiming, which this may start, must not take the entry for an old one.
        self._make_room(_ENTRY_BYTES + self._length[entry])
        self._kind[entry] = kind
        self._packet_id[entry] = packet_id
        self._number[entry] = self._next_number
        self._next_number += 1
        self._append(entry, buf)
        self._is_due = True
        self._is_clear = False

    def _append(self, entry, buf):
        n = self._length[entry]
        self._make_room(_ENTRY_BYTES + n)
        ring = self._ring
        at = ring.end
        number = self._number[entry]
        packet_id = self._packet_id[entry]
        pack_into("<BIHH", ring.buf, at, self._kind[entry], number, packet_id, n)
        at += _ENTRY_BYTES
        pack_into(self._format, ring.buf, at, buf)
        self._page[entry] = _PENDING
        self._offset[entry] = at - ring.start
        ring.end = at + n

    def _note(self, kind, entry):
        self._make_room(_NOTE_BYTES)
        ring = self._ring
        pack_into("<BI", ring.buf, ring.end, kind, self._number[entry])
        ring.end += _NOTE_BYTES

    def _make_room(self, n):
        while not self._ring.has_room(n):
            self._program()

    def _load(self, entry):
        # Read a packet to the start of `_packet`.
        ring = self._ring
        packet = source = self._packet
        skip = 0
        at = self._page[entry] * ring.page_bytes + self._offset[entry]
        if self._page[entry] == _PENDING:
            source = ring.buf
            skip = ring.start + self._offset[entry]
        else:
            # A whole buffer is read, but not beyond the end of the device.
            skip = max(0, at + len(packet) - ring.pages * ring.page_bytes)
            try:
                ring.read(at - skip, packet)
            except OSError:
                raise MQTTError(JOURNAL)
        if skip:
            for i in range(self._length[entry]):
                packet[i] = source[skip + i]

    # --- programming and reclaiming ---------------------------------------------------

    def _program(self):
        ring = self._ring
        start = ring.start
        page = ring.program()
        for i in range(len(self._kind)):
            if self._kind[i] and self._page[i] == _PENDING:
                self._page[i] = page
                self._offset[i] += start
        self._is_due = False
        self._keep_spare()

    def _keep_spare(self):
        if not self._is_reclaiming:
            self._is_reclaiming = True
            try:
                while self._ring.spare() < _SPARE_BLOCKS:
                    self._reclaim()
            finally:
                self._is_reclaiming = False

    def _reclaim(self):
        # Copy what still counts in the oldest block.  Entries of one page stay
        # together, so the copies never take more pages than there were.
        ring = self._ring
        first = ring.oldest % ring.blocks * ring.block_pages
        left = 0
        for i in range(len(self._kind)):
            left += self._is_on(i, first, ring.block_pages)
        if not left:
            ring.oldest += 1
        for page in range(first, first + ring.block_pages):
            for i in range(len(self._kind)):
                if left and self._is_on(i, page, 1):
                    self._load(i)
                    self._append(i, self._packet)
                    left -= 1
                    if not left:
                        # The last copy says itself that the block has served.
                        ring.oldest += 1
            self.sync()

    def _is_on(self, entry, page, pages):
        return self._kind[entry] != 0 and page <= self._page[entry] < page + pages


def _refuse(name):
    raise MQTTError(JOURNAL, "journal holds more than fits: raise " + name)
