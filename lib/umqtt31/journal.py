"""The store on flash: what was accepted survives a pulled plug, at any instruction.

Theory of operation.  A message is an entry in a log; what happens to it later is a
note behind it: PUBREC came, it is done, a connection opened.  `Ring` keeps the log, in
groups that count as a whole or not at all: `commit()` programs what a packet waits
for, and "done" goes along with the next group.  RAM keeps 17 bytes for an entry; its
packet is read from flash, and is empty from then on if it is not what it was.  When fewer
than two blocks are spare, or three as long as there is room, the entries in the
oldest block that still count are copied to the end of the log, in groups as they were,
and the block is given up.  A received QoS 2 id is held and released by notes; each
block's title says which ids are held, so giving up a block loses none.  A note is
written before what it says is done in RAM: a device that fails changes nothing.
`opening` has what is needed once.  docs/reference/journal-format.md has every byte.
"""

from struct import pack_into

from micropython import const, heap_lock, heap_unlock

from . import MQTTError
from .ring import Ring
Runs = None

# An entry: kind with QoS and flags, number, packet id, length, packet.
_ENTRY = const(0x80)
_PUBREC = const(0x08)
_SENT = const(0x10)
_ENTRY_BYTES = const(9)
# A note: kind, and the number of the entry or the packet id that is meant.
_NOTE_PUBREC = const(1)
_NOTE_REMOVE = const(2)
_NOTE_ONLINE = const(3)
_NOTE_CLEAR = const(4)
_NOTE_HOLD = const(5)
_NOTE_RELEASE = const(6)
_NOTE_RENEW = const(7)
_NOTE_BYTES = const(5)

_REMOVED = const(0x40)  # the kind of an entry that is done, which no note says yet
_PENDING = const(0xFFFF)  # the page of an entry whose group is still in RAM
_HIGH_NUMBER = const(0x20000000)  # half of the small integers that there are
_SPARE_BLOCKS = const(2)
_JOURNAL = const(262)
_MOST_TRIES = const(5)  # of one call: a watchdog may be waiting
_CLEAN = const(0x80)


class Journal:
    """A store as `ram.RamStore`, on a block device with MicroPython's extended
    protocol: esp32.Partition, rp2.Flash, FileBlockDevice or your own.

    `program_bytes`: what the flash programs at once.  `erase_bytes`: what is erased
    at once, the device's block, or a multiple of it if the device reads and programs
    over the ends of its blocks, as flash does.  `cell_bytes`: groups begin at
    multiples of it, so that several share a page, which is programmed again with
    more in it; where the flash forbids that (ECC), give the value of
    `program_bytes`.  `group_commit`: the messages of one poll share a program
    operation, and are durable when they are first sent instead of when `publish()`
    returns.  `erase_foreign`: erase what another client, format, layout or
    level left, instead of refusing it.
    """

    Held = Runs  # what fits into a title
    level = 3  # the protocol's; the client sets it before open()
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
        self._ring = Ring()
        self._layout = (block_device, program_bytes, cell_bytes, erase_bytes)
        self.is_deferred = group_commit
        self._erase_foreign = erase_foreign

    def open(self, client_id, slots, slot_bytes, held_slots):
        """As RamStore; then read the log and, after a cut, finish reclaiming.

        Raises ValueError if the layout or the device is unfit for these sizes;
        MQTTError (JOURNAL) if it holds another client's journal or more than fits,
        unchanged; OSError if it cannot be read.
        """
        from .opening import hand_over, open_journal

        self._hand_over = hand_over  # until recover(), and never again
        open_journal(self, client_id, slots, slot_bytes, held_slots)
        try:
            self._keep_spare()
        except MQTTError:
            pass  # with the next record again: what is here can be read

    def recover(self, session):
        """As RamStore, once; received ids by `session.restore_run(first, last)`, and
        `session.restore_last_id(id)`, the newest id recorded."""
        self._hand_over(self, session)
        self._hand_over = None

    def bad_blocks(self):
        """-> how many of the device's blocks failed when they were to be written last: the
        journal goes on without them."""
        return self._ring.bad_blocks

    # --- the face of a store ------------------------------------------------------

    def put(self, slot, packet_id, qos, buf, n, maybe_sent):
        """As RamStore.  Without `group_commit` it is durable on return."""
        n = self._make_slot(slot, n)
        if not n:
            return False
        self._packet_id[slot] = packet_id
        if packet_id:
            self._ring.last_id = packet_id
        self._set_check(slot, buf)
        if maybe_sent:
            qos |= _SENT
        # It comes at one stroke: Ctrl-C comes in at jumps.
        self._used += n
        self._kind[slot] = _ENTRY | qos
        self._append(slot, buf)
        self._is_clear = False
        if self.is_deferred:
            self._is_due = True
        else:
            self._commit_slot(slot)
        return True

    def _make_slot(self, slot, n):
        # -> what a message of `n` bytes costs, which can be appended then; 0 for no room.
        ring = self._ring
        cost = ring.cost(_ENTRY_BYTES + n)
        room = self._capacity - ring.bad_blocks * self._block_pages
        if cost > room:
            # Nothing that is given up would help.  Once nothing is kept, they may be tried again.
            if not self._used:
                ring.forgive()
            raise MQTTError(_JOURNAL, "journal has too few good blocks left")
        if self._used + cost > room:
            return 0
        while self._kind[slot]:  # no note says yet that it is free
            self.remove(slot)  # if Ctrl-C ended a put()
            self._program()
        self._make_room(_ENTRY_BYTES + n)
        if not self._used and self._next_number >= _HIGH_NUMBER:
            self._next_number = 0  # nothing is here whose order it would change
        self._length[slot] = n
        self._number[slot] = self._next_number
        self._next_number += 1
        return cost

    def _set_check(self, slot, buf):
        pack_into(self._format, self._ring.packet, 0, buf)
        self._check[slot] = self._ring.check(self._length[slot])

    def _commit_slot(self, slot):
        try:
            self._program()
        except MQTTError:
            # It may be on flash, and just the reclaiming behind it failed.
            if self._page[slot] == _PENDING:
                self.remove(slot)
                raise
        except BaseException:
            self.remove(slot)
            raise

    def get(self, slot, buf):
        """As RamStore; reads from flash."""
        if not self._load(slot):
            return 0
        pack_into(self._format, buf, 0, self._ring.packet)
        return self._length[slot]

    def pubrec(self, slot):
        """As RamStore; durable after `commit()`."""
        self._note(_NOTE_PUBREC, self._number[slot])
        self._kind[slot] |= _PUBREC

    def remove(self, slot):
        """As RamStore; goes along with what is programmed next.  Never raises."""
        if self._kind[slot] & _ENTRY:  # else Ctrl-C ended this before
            self._used -= self._cost(slot)
            self._kind[slot] = _REMOVED
            self._removed += 1
            if self._ring.has_room(_NOTE_BYTES):
                self._note_removed(slot)

    def hold(self, packet_id):
        """As RamStore; durable after `commit()`."""
        if self._held.find(packet_id) < 0:
            self._note(_NOTE_HOLD, packet_id)
            self._held.add(packet_id, 0)
            self._is_clear = False

    def release(self, packet_id):
        """As RamStore; durable after `commit()`."""
        if self._held.find(packet_id) >= 0:
            self._note(_NOTE_RELEASE, packet_id)
            self._held.remove(packet_id)

    def online(self):
        """As RamStore; durable after `commit()`."""
        if self._has(_ENTRY | _SENT, _ENTRY):
            self._note(_NOTE_ONLINE, 0)
            self._mark(_SENT, 0)

    def renew(self, is_clean):
        """As RamStore; durable after `commit()`."""
        session = self.level | (_CLEAN if is_clean else 0)
        ring = self._ring
        if (
            session != ring.session
            or self._held.count
            or self._has(_SENT, _SENT)
            or self._has(_PUBREC, _PUBREC)
        ):
            self._note(_NOTE_RENEW, 0)
            ring.session = session
            self._mark(0, _SENT | _PUBREC)
            self._held.clear()

    def commit(self):
        """As RamStore; programs only if a packet waits for it."""
        if self._is_due:
            self._program()

    def sync(self):
        """As RamStore."""
        while self._removed or not self._ring.is_empty():
            self._program()

    def clear(self):
        """As RamStore; durable on return."""
        if not self._is_clear:
            self._note(_NOTE_CLEAR, 0)
            for slot in range(len(self._kind)):
                self._kind[slot] = 0
            self._used = self._removed = 0
            self._held.clear()
            self._program()
            self._is_clear = True

    # --- entries and notes ----------------------------------------------------------

    def _has(self, mask, flags):
        # Is there an entry with these flags?
        for kind in self._kind:
            if kind & _ENTRY and kind & mask == flags:
                return True
        return False

    def _mark(self, add, clear):
        # Change the flags of all entries.
        for slot in range(len(self._kind)):
            if self._kind[slot] & _ENTRY:
                self._kind[slot] = self._kind[slot] & ~clear | add

    def _cost(self, slot):
        # Pages of a message alone.
        return self._ring.cost(_ENTRY_BYTES + self._length[slot])

    def _append(self, slot, buf):
        # There is room.
        ring = self._ring
        pack_into("<BI", ring.buf, ring.end, self._kind[slot], self._number[slot])
        ring.end += 5
        pack_into("<HH", ring.buf, ring.end, self._packet_id[slot], self._length[slot])
        ring.end += 4
        pack_into(self._format, ring.buf, ring.end, buf)
        self._page[slot] = _PENDING
        self._offset[slot] = ring.end - ring.start
        ring.end += self._length[slot]

    def _note(self, kind, number):
        # A note that commit() has to program.
        self._make_room(_NOTE_BYTES)
        self._append_note(kind, number)
        self._is_due = True

    def _append_note(self, kind, number):
        ring = self._ring
        pack_into("<BI", ring.buf, ring.end, kind, number)
        ring.end += _NOTE_BYTES

    def _note_removed(self, slot):
        self._append_note(_NOTE_REMOVE, self._number[slot])
        self._kind[slot] = 0
        self._removed -= 1

    def _make_room(self, n):
        while not self._ring.has_room(n):
            self._program()

    def _load(self, slot):
        # Read a packet to the start of `packet` -> is it what was put there?
        ring = self._ring
        if self._page[slot] == _PENDING:
            self._move(slot, ring.buf, ring.start + self._offset[slot])
            return self._length[slot] > 0
        if self._is_read(slot) or self._is_read(slot):
            return True
        # Its copies say so, too.
        self._used -= self._cost(slot)
        self._length[slot] = 0
        self._used += self._cost(slot)
        return False

    def _is_read(self, slot):
        # A whole buffer is read, but not beyond the end of the block.
        ring = self._ring
        at = self._page[slot] * ring.page_bytes + self._offset[slot]
        skip = ring.block_pages * ring.page_bytes
        skip = max(0, at % skip + len(ring.packet) - skip)
        ring.read(at - skip)
        if skip:
            self._move(slot, ring.packet, skip)
        at = self._length[slot]
        return at and ring.check(at) == self._check[slot]

    def _move(self, slot, buf, at):
        packet = self._ring.packet
        for i in range(self._length[slot]):
            packet[i] = buf[at + i]

    # --- programming and reclaiming ---------------------------------------------------

    def _program(self):
        # What a failing device interrupted comes first: it makes the room.
        self._keep_spare()
        if not self._ring.is_empty():
            self._program_group()
            self._keep_spare()
        if self._removed and not self._is_reclaiming:
            for slot in range(len(self._kind)):
                if self._kind[slot] == _REMOVED and self._ring.has_room(_NOTE_BYTES):
                    self._note_removed(slot)

    def _program_group(self):
        tries = _MOST_TRIES
        while True:
            heap_lock()  # see umqtt31.client: so the frame lies on the stack
            if self._is_programmed():
                break
            tries -= 1
            if not tries:
                raise MQTTError(_JOURNAL)
        self._is_due = False

    def _is_programmed(self):
        heap_unlock()
        start = self._ring.start
        if not start:
            self._write_held()
        page = self._ring.program()
        try:
            return self._has_page(page, start)
        except BaseException:  # Ctrl-C: no entry of the group may stay without
            self._has_page(page, start)
            raise

    def _has_page(self, page, start):
        # -> is there one, at which the group begins?
        for slot in range(len(self._kind) if page >= 0 else 0):
            if self._page[slot] == _PENDING:
                self._offset[slot] += start
                self._page[slot] = page
        return page >= 0

    def _write_held(self):
        # The received ids that are held, for the title, in case this begins a block.
        held = self._held
        at = self._ring.state_at
        k = 0
        while k < held.end:
            if k % 3 < 2:
                pack_into("<H", self._ring.title, at, held.runs[k])
                at += 2
            k += 1
        pack_into("<H", self._ring.title, at, 0)

    def _keep_spare(self):
        if not self._is_reclaiming and (self._ring.skipped or self._ring.spare() <= _SPARE_BLOCKS):
            self._is_reclaiming = True
            try:
                self._make_spare()
            finally:
                self._is_reclaiming = False

    def _make_spare(self):
        ring = self._ring
        for _ in range(ring.blocks):
            if ring.spare() >= self._wanted() or ring.oldest >= ring.newest:
                break
            self._reclaim()

    def _wanted(self):
        # How many blocks to keep spare: two for copies, and as long as there is room one
        # for the next that goes bad; one where more is kept than bad blocks leave room for.
        ring = self._ring
        room = self._capacity - self._used - ring.bad_blocks * self._block_pages
        if room < 0:
            return 1
        return _SPARE_BLOCKS + ring.skipped + (room >= self._block_pages)

    def _reclaim(self):
        # Copy what still counts in the oldest block.  Entries of one page stay
        # together, so the copies never take more pages than there were.
        ring = self._ring
        page = ring.oldest % ring.blocks * ring.block_pages
        left = self._count_on(page, ring.block_pages)
        if left:
            self._program()
        else:
            ring.oldest += 1
        while left:
            left -= self._copy(page)
            if not left:
                # The last copy says itself that the block has served; till it is
                # programmed, the ring does not erase the block.
                ring.oldest += 1
            self._program()
            page += 1

    def _count_on(self, page, pages):
        n = 0
        for slot in range(len(self._kind)):
            if self._kind[slot] & _ENTRY and page <= self._page[slot] < page + pages:
                n += 1
        return n

    def _copy(self, page):
        # -> how many entries of the page were appended.
        n = 0
        for slot in range(len(self._kind)):
            if self._page[slot] == page and self._kind[slot] & _ENTRY:
                self._load(slot)
                self._make_room(_ENTRY_BYTES + self._length[slot])
                self._append(slot, self._ring.packet)
                n += 1
        return n
