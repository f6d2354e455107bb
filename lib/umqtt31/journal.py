"""A store on flash: what was accepted survives a pulled plug, at any instruction.

    client = MQTTClient(..., store=Journal(block_device))

The journal is a log with a cursor.  A message that waits takes no RAM.  The core says at its
end what it asks of a store; docs/reference/journal-format.md has every byte.
"""

# Theory of operation.
#
# The region is a circle of blocks, which are written one after the other:
#
#     | erased | erased | _oldest | ... | _newest: group group group - - |
#
# Blocks are numbered on and on.  A group counts as a whole or not at all: it has a CRC.  It
# holds messages, as the core's entries, and notes of what happened to messages and to
# received QoS 2 ids.  The first group of each block is its title.
#
# A new group is made in _buf, from _start on.  In front of it is room for what shares its
# page, so that a page is programmed as a whole.  What was programmed is read back.
#
# Messages are numbered, too.  Those from _next up to _end lie in the log alone.  For each
# message that the core has there is a row in four arrays.  It goes when a note says that the
# message is done.  The first _taken rows are of messages that the core has; the others are of
# messages that an earlier life had, and that wait again.  The next message is looked for from
# the cursor on, where it mostly lies, and then in the whole log.
#
# When less than two blocks are spare, what still counts in the oldest one is copied to the
# end of the log, and the block is given up.  Held ids are written anew before the block with
# their last list is given up: the core keeps them.  tidy() does this and erases blocks that
# will be needed, so that put() erases only if two blocks were filled since.
#
# A note is written to _buf before what it says is done in RAM.  So a device that fails
# changes nothing.  The module `opening` has what is needed once.

from binascii import crc32
from io import BytesIO
from struct import pack_into

from micropython import const, heap_lock, heap_unlock

from . import MQTTError

_MAGIC = const(0x4A)
_VERSION = const(3)
_HEAD = const(12)  # magic, version, length, number of the first message, page
_CRC = const(4)
_NOTE = const(5)  # a kind and a number

# Kinds of notes.  An entry begins with 0x40 or more, what is blank with 0xFF.
_NUMBER = const(1)  # the next entry has this number
_DONE = const(2)
_RECEIVED = const(3)  # PUBREC came
_ONLINE = const(4)  # messages before this number may have been sent
_HOLD = const(5)
_RELEASE = const(6)
_RENEW = const(7)  # a new session: its level, 0x80 more if it is a clean one
_ID_SET = const(8)  # number of a set of 30 received ids
_BITS = const(9)  # which of these are held
_OLDEST = const(10)  # the block with which the log begins
_TITLE = const(11)

_AGAIN = const(8)
_IS_DONE = const(0x80)  # + 1 once a note in _buf says so
_JOURNAL = const(262)
_MOST_TRIES = const(12)  # of one call: a watchdog may be waiting
_BLANK = b"\xff" * 32


class Journal:
    """A store on a block device with MicroPython's extended protocol: esp32.Partition,
    rp2.Flash, FileBlockDevice or your own.

    `program_bytes`: what the flash programs at once.  `erase_bytes`: what is erased at once,
    the device's block, or a multiple of it if the device reads and programs over the ends of its
    blocks, as flash does.  `cell_bytes`: groups begin at multiples of it, so that several share a
    page, which is programmed again with more in it; where the flash forbids that (ECC), give the
    value of `program_bytes`.  `group_commit`: the messages of one poll share a program
    operation, and are durable when they are first sent or at the next poll() instead of when
    publish() returns.  `erase_foreign`: erase what another client, format, layout or level left,
    instead of refusing it.
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
        self._dev = block_device
        self._sizes = program_bytes, cell_bytes, erase_bytes
        self._is_deferred = group_commit
        self._is_erasing = erase_foreign

    def open(self, client_id, level, buffer_size, most, hold, held, ring_bytes):
        """As the core has it.  Raises ValueError if the layout or the device is unfit for these
        sizes; MQTTError (JOURNAL) if it holds another client's journal or more than fits,
        unchanged; OSError if it cannot be read."""
        from .opening import open_journal

        self._level = level
        self._held = held
        found = open_journal(
            self._dev, self._sizes, self._is_erasing, client_id, level, buffer_size, most, hold,
            len(held) // 3, ring_bytes)  # fmt: skip
        open_journal = None  # the memory of its module is free
        (
            self._dev_bytes, self._dev_blocks, self._cell, self._page_cells, self._cells,
            self._blocks, self._title, self._title_cells, self._buf, self._start, self._most,
            self._parts, self._before, self._sums, self._head, self._back, self._room,
            self._room_held, self._numbers, self._ids, self._states, self._costs, self._rows,
            self._next, self._end, self._oldest, self._newest, self._at, self._ready,
            self._sent, self._used, session, self._last_id, self.corrupt_pages, entries, sent,
            self._listed, self._twice,
        ) = found  # fmt: skip
        self._bad = bytearray(self._blocks)
        self._again = self._sent
        self._base = self._end
        self._told = self._cursor = self._oldest
        self._good = self._doubtful = self._newest  # the last block with a title
        self._cursor_at = self._taken = self._failures = 0
        self._is_new = self._is_set = self._is_busy = self._is_due = False
        self._has_held = True  # does the core's list count?
        self._first = self._fill = self._start + _HEAD
        self._full = self._start + self._most * self._cell - _CRC
        self._form = "%ds" % (buffer_size + 5)
        self._title_form = "%ds" % len(self._title)
        self._copier = BytesIO(buffer_size + 5)
        self._session = session
        self._keep_state()
        self._session = session & 0x80 | level
        if not entries and session & 7 != level:  # what comes is of this level
            self._write(_RENEW, self._session)
            self._list_held()
        return entries, sent, self._last_id, session > 0x7F

    def bad_blocks(self):
        """-> how many of the device's blocks failed when they were to be written last: the
        journal goes on without them."""
        return sum(self._bad)

    # --- what the core calls ------------------------------------------------------------------

    def put(self, ring, at, n, is_online, is_behind):
        """As the core has it."""
        cost = self._count(_HEAD + n + _CRC)
        if self._used + cost > self._capacity():
            if cost > self._capacity():  # nothing that is given up would help
                if self._used < self._room:
                    for k in range(self._blocks):
                        self._bad[k] = 0  # they are tried again: it may have passed
                raise MQTTError(_JOURNAL, "journal has too few good blocks left")
            return False
        if not is_behind and self._rows == len(self._ids):
            self.sync()  # of some nobody has written down that they are done
            if self._rows == len(self._ids):
                return False
        self._make_room(n)
        fill = self._fill
        buf = self._buf
        self._copy(ring, at, n)
        pack_into(self._form, buf, fill, buf)
        if is_online:
            buf[fill] |= _AGAIN
        if is_behind and self._next == self._end and self._taken == self._rows:
            self._cursor_at = -1  # where it comes to lie
        self._fill = fill + n
        if self._is_deferred:
            self._is_due = True
        else:
            try:
                self._program()
            except BaseException:
                self._fill = fill
                raise
        number = self._end
        self._end = number + 1
        self._used += cost
        self._last_id = ring[at + 3] << 8 | ring[at + 4]
        if self._fill == self._first:
            self._base = self._end
        if is_online:
            self._sent = self._end
            self._is_new = False
        if not is_behind:
            self._add(number, ring[at], cost)
            self._take(self._last_id)
        if not self._is_deferred:
            self._keep_state()
        return True

    def fetch(self, ring, at):
        """As the core has it."""
        self.commit()
        self._take_back()  # what is read needs _buf
        if self._taken == self._rows == len(self._ids):
            self.sync()
        k = self._taken
        number = self._numbers[k] if k < self._rows else self._next
        where = self._find(number, True) or self._find(number, True)
        is_lost = not where
        if is_lost:
            where = self._find(number, False)
        buf = self._buf
        n = 5
        pack_into("5s", ring, at, b"")
        if where:
            n += buf[where + 1] << 8 | buf[where + 2]
            self._copy(buf, where, n)
            pack_into(self._form, ring, at, buf)
        state = self._states[k] if k < self._rows else ring[at] & 0xF0
        if is_lost:
            state = 0
        elif number < self._again:
            state |= _AGAIN
        ring[at] = state
        if k == self._rows:
            # Of one that is lost, opening counted no cells.
            self._add(number, state & 0xF0 or 0x40, state and self._count(_HEAD + n + _CRC))
        self._take(ring[at + 3] << 8 | ring[at + 4])
        return n

    def note(self, first, packet_id):
        """As the core has it.  Never raises for what is done."""
        if first == 0x30:
            self._write(_HOLD, packet_id)
            self._has_held = True
        elif first == 0x62:
            self._write(_RELEASE, packet_id)
        elif first == 0x20:
            # The clean CONNECT never left: the session goes on, at level 5 with what was sent.
            is_kept = packet_id and self._session > 0x7F
            if is_kept and self._level < 5:
                self.renew(False)
            self._has_held = True
            if is_kept:
                self._list_held()
                self._is_new = False
            if self._sent != self._end and self._used:
                self._write(_ONLINE, self._end)
                self._sent = self._end
        else:
            k = 0
            while k < self._taken and (self._ids[k] != packet_id or self._states[k] & _IS_DONE):
                k += 1
            if k == self._taken:
                return
            if first == 0x50:
                number = self._numbers[k]
                self._write(_RECEIVED, number)  # rows before it may go
                self._states[self._row_of(number)] = 0x70
            else:
                self._states[k] |= _IS_DONE
                self._used -= self._costs[k]
                self._append_done(k)

    def renew(self, is_clean):
        """As the core has it."""
        if is_clean:
            self.sync()  # with all that was given up for it
        session = self._level | is_clean << 7
        if session != self._session or not self._is_new:
            self._write(_RENEW, session)
            self._session = session
            self._sent = self._again = 0
            for k in range(self._rows):
                if self._states[k] == 0x70:
                    self._states[k] = 0x50
            self._is_new = True
            self._has_held = False

    def commit(self):
        """As the core has it."""
        if self._is_due:
            self._program()

    def sync(self):
        """As the core has it."""
        self._make_room(0)
        if self._fill != self._first:
            self._program()

    def tidy(self):
        """As the core has it: one block is erased or reclaimed at most."""
        self.commit()
        if self._is_set:
            return
        self._take_back()
        try:
            if self._is_short(1):
                self._reclaim()
            elif self._newest - self._listed >= self._blocks - 2 >> 1:
                self._list_held()
            elif (
                self._ready < self._newest + 2
                and self._ready + 1 < self._told + self._blocks
                and self._erase(self._ready + 1)
            ):
                self._ready += 1
            else:
                self._is_set = True
        except MQTTError:
            self._is_set = True  # with the next block again

    # --- messages -----------------------------------------------------------------------------

    def _count(self, n):
        # -> cells that `n` bytes take.
        return (n + self._cell - 1) // self._cell

    def _capacity(self):
        # In cells.  With this limit reclaiming never gets stuck: see the format.
        return (self._blocks - 3 - sum(self._bad)) * self._room - self._room_held

    def _copy(self, buf, at, n):
        # To the start of _buf, from where pack_into() copies without a slice.
        copier = self._copier
        copier.seek(0)
        copier.write(buf, at, n)
        copier.seek(0)
        copier.readinto(self._buf, n)

    def _add(self, number, state, cost):
        k = self._rows
        self._numbers[k] = number
        self._states[k] = state
        self._costs[k] = cost
        self._rows = k + 1
        self._next = number + 1

    def _take(self, packet_id):
        # The core has the next one.
        self._ids[self._taken] = packet_id
        self._taken += 1

    def _drop(self):
        # Forget the rows of messages that are done, as a note says it now.
        to = 0
        for k in range(self._rows):
            if not self._states[k] & 1:
                self._numbers[to] = self._numbers[k]
                self._ids[to] = self._ids[k]
                self._states[to] = self._states[k]
                self._costs[to] = self._costs[k]
                to += 1
        self._taken -= self._rows - to
        self._rows = to

    def _row_of(self, number):
        # -> the row of a message that counts, -1 if it lies in the log alone, -2 for none.
        if self._next <= number < self._end:
            return -1
        for k in range(self._rows):
            if self._numbers[k] == number:
                return k
        return -2

    def _find(self, number, is_strict):
        # -> where the message stands in _buf, 0 for nowhere.
        block = self._cursor
        at = self._cursor_at
        if block < self._oldest or at < 0:
            block = self._oldest
            at = 0
        for _ in range(self._newest - self._oldest + 2):
            while at < self._cells:
                n = self._read(block, at, is_strict)
                where = self._entry(self._first) if n else 0
                while where:
                    if self._number == number:
                        self._cursor = block
                        self._cursor_at = at
                        return where
                    where = self._entry_behind(where)
                at += n or 1
            at = 0
            block += 1
            if block > self._newest:
                block = self._oldest
        return 0

    # --- groups -------------------------------------------------------------------------------

    def _make_room(self, n):
        # For `n` more bytes, in a group that is sure to find its place, and behind the notes of
        # what is done.
        for _ in range(self._blocks):
            if self._is_busy or self._is_due:
                break
            if self._is_short(2):
                self._take_back()
                self._reclaim()
            elif self._newest - self._listed >= self._blocks - 2 >> 1:
                self._list_held()
            else:
                break
        for k in range(self._taken):
            if self._states[k] & (_IS_DONE | 1) == _IS_DONE:
                self._append_done(k)
        if self._fill + max(n, _NOTE) > self._full:
            self._program()
            self._make_room(n)

    def _take_back(self):
        # What was appended since is to be appended again.
        self._fill = self._first
        self._is_due = False
        for k in range(self._taken):
            self._states[k] &= 0xFE

    def _append_done(self, k):
        # If there is room.
        if self._fill + _NOTE <= self._full:
            self._append(_DONE, self._numbers[k])
            self._states[k] |= 1

    def _write(self, kind, number):
        # A note that commit() has to program.
        self._make_room(_NOTE)
        self._append(kind, number)
        self._is_due = True
        self._is_new = False

    def _append(self, kind, number):
        pack_into("<BI", self._buf, self._fill, kind, number)
        self._fill += _NOTE

    def _program(self, number=-1, kept=1):
        # Make the group durable; if it raises, it is as it was.  `number`: of the first message
        # of a copy; `kept`: cells that stay free at the end of a block.
        if self._at + self._most + self._page_cells > self._cells and not self._is_busy:
            self._rescue()
        fill = self._fill
        if number < 0 and self._told != self._oldest and fill + _NOTE <= self._full:
            self._append(_OLDEST, self._oldest)
        tries = _MOST_TRIES
        try:
            while not self._is_written(self._base if number < 0 else number, kept, tries):
                tries -= 1
                if not tries:
                    raise MQTTError(_JOURNAL)
        except BaseException:
            self._fill = fill
            raise
        if self._fill != fill:
            self._told = self._oldest
        self._fill = self._first
        self._failures = 0
        self._is_due = False
        if number < 0:
            self._base = self._end
            self._drop()
        self._keep_state()

    def _rescue(self):
        # Blocks failed since the group was begun.  This is so seldom that it may allocate.
        fill = self._fill
        is_due = self._is_due
        base = self._base
        end = self._end
        for _ in range(self._blocks):
            if self._spare() > 1 or not self._is_short(2):
                break
            records = bytes(self._buf[self._first : fill])
            self._take_back()  # or a list of held ids would take it along, before its turn
            self._end = base
            try:
                self._reclaim()
            finally:
                self._end = end
                self._buf[self._first : fill] = records
                self._fill = fill
                self._is_due = is_due
                self._base = base

    def _keep_state(self):
        # What is durable now, for the title of the next block.
        first = self._numbers[0] if self._rows else self._next
        pack_into("<I", self._title, 4, self._base)
        pack_into("<BH", self._title, 22, self._session, self._last_id)
        pack_into("<3I", self._title, 25, first, self._next, self._sent)

    def _is_written(self, number, kept, tries):
        # Try one place -> does the device hold the group there?
        buf = self._buf
        start = self._start
        cells = self._count(self._fill - start + _CRC)
        page_cells = self._page_cells
        at = self._at
        before = at % page_cells
        if (before + cells - 1) // page_cells > (cells - 1) // page_cells:
            if self._used * 2 < self._capacity() and not self._is_busy:
                at += page_cells - before  # there is room enough to program a page less
        if self._good != self._newest:
            at += self._title_cells
        if at + cells + kept > self._cells:
            if not self._is_begun(tries):
                return False
            at = self._title_cells
        before = at % page_cells
        block = self._newest
        page = block * (self._cells // page_cells) + at // page_cells
        if self._good != block:
            before = self._title_cells
            self._entitle(page - before // page_cells)
        elif before:
            try:
                self._load(block, at - before, self._before[before])
            except MQTTError:  # of the page that it would share
                self._at = at - before + page_cells
                self._give_up_page()
                return False
        size = cells * self._cell
        pages = (before + cells + page_cells - 1) // page_cells
        k = self._fill
        while k < start + (pages * page_cells - before) * self._cell:
            pack_into("32s", buf, k, _BLANK)
            k += 32
        pack_into("<BBHII", buf, start, _MAGIC, _VERSION, size, number, page)
        _seal(buf, self._sums[cells - 1], start + size)
        at -= before
        self._at = at + pages * page_cells
        k = 0
        try:
            while k < pages and self._is_put(at + k * page_cells, self._parts[before][k]):
                k += 1
        finally:
            if k < pages:  # it may be there all the same, and is not to be found
                pack_into("<I", buf, start + size - _CRC, 0)
                self._is_put(at + k * page_cells, self._parts[before][k])
        if k < pages:
            self._give_up_page()
            return False
        self._at = at + before + cells
        if self._good != block:
            self._good = block
            self._bad[block % self._blocks] = 0
            self._told = self._oldest
            self._is_set = False
        if self._cursor_at < 0:
            self._cursor = block
            self._cursor_at = at + before
        return True

    def _give_up_page(self):
        # Twice, or once where it was bad before: another block has to take it.
        self._failures += 1
        is_new = self._good != self._newest
        self._doubtful = self._newest  # who knows what it holds
        if self._failures > 1 or is_new and self._bad[self._newest % self._blocks]:
            self._at = self._cells

    def _entitle(self, page):
        # The title stands in front of the group, and is programmed with it.
        title = self._title
        pack_into("<I", title, 8, page)
        title[21] = self._newest - self._oldest
        pack_into(self._title_form, self._buf, self._start - len(title), title)
        _seal(self._buf, self._before[self._title_cells], self._start)

    def _is_begun(self, tries):
        # Go on to the next block -> is it erased?
        block = self._newest + 1
        if self._good < self._newest:
            self._bad[self._newest % self._blocks] = 1  # it took nothing
        if (
            block + (not self._is_busy) >= self._oldest + self._blocks
            or block >= self._told + self._blocks
            or block > self._good + 3  # then it is not for the blocks
        ):
            if self._newest == self._good or tries < _MOST_TRIES:
                raise MQTTError(_JOURNAL, "journal has no spare block left")
            # The next call tries those again that failed.  What they took all the same is erased,
            # as it would stand behind what comes.
            while self._newest > self._good:
                if not self._erase(self._newest):
                    if self._newest == self._doubtful:
                        raise MQTTError(_JOURNAL)
                    self._ready = self._newest - 1
                self._bad[self._newest % self._blocks] = 0
                self._newest -= 1
            self._at = self._cells
            return False
        if block > self._ready:
            if not self._erase(block):
                self._failures += 1
                if self._failures > 4 or self._bad[block % self._blocks]:
                    self._failures = 0
                    self._newest = self._ready = block
                    self._at = self._cells
                return False
            self._ready = block
        self._newest = block
        self._at = self._failures = 0
        return True

    # --- room ---------------------------------------------------------------------------------

    def _spare(self):
        # -> blocks that are not in the log, but for those that are bad.
        n = self._oldest + self._blocks - 1 - self._newest
        for block in range(self._newest + 1, self._oldest + self._blocks):
            n -= self._bad[block % self._blocks]
        return n

    def _is_short(self, least):
        # Two for copies, and as long as there is room two for those that go bad next; fewer
        # where more is kept than bad blocks leave room for.
        left = (self._capacity() - self._used) // self._room
        return self._spare() < max(least, min(4, 2 + left)) and self._oldest < self._good

    def _list_held(self):
        # All held ids, so that those noted before need not be kept.
        held = self._held
        listed = self._listed
        self._listed = self._newest
        try:
            for k in range(0, len(held), 3):
                if self._has_held and held[k + 1]:
                    self._make_room(2 * _NOTE)
                    self._append(_ID_SET, held[k])
                    self._append(_BITS, held[k + 1])
                    self._is_due = True
            self.commit()
        except BaseException:
            self._listed = listed
            self._take_back()
            raise

    def _reclaim(self):
        # Give up the oldest block; what counts in it is copied to the end of the log.  A cut
        # does no harm, as reading a message twice is like reading it once.
        block = self._oldest
        self._is_busy = True
        try:
            if self._listed <= block:
                self._list_held()
            if self._rows or self._next != self._end:
                self._copy_block(block)
            self._oldest = block + 1
            if self._newest + 1 >= self._told + self._blocks:
                try:  # nobody can erase the block before this is said
                    self._program(-1, 0)
                except BaseException:
                    self._oldest = block
                    raise
        finally:
            self._take_back()
            self._is_busy = False

    def _copy_block(self, block):
        at = 0
        while at < self._cells:
            n = self._read(block, at, True)
            at += n or 1
            number = self._pick() if n else -1
            if number >= 0:
                self._program(number)
            self._fill = self._first

    def _pick(self):
        # Keep the messages that count of the group in _buf -> number of the first, -1 for none.
        # It never gets longer.
        buf = self._buf
        fill = self._first
        first = then = -1
        where = self._entry(fill)
        while where:
            number = self._number
            k = self._row_of(number)
            behind = self._entry_behind(where)
            if number in self._twice:
                self._twice.discard(number)  # a copy of it is behind, from before a cut
            elif k > -2:
                if first < 0:
                    first = number
                elif number != then:
                    pack_into("<BI", buf, fill, _NUMBER, number)
                    fill += _NOTE
                n = 5 + (buf[where + 1] << 8 | buf[where + 2])
                state = (buf[where] if k < 0 else self._states[k]) & 0x70
                if fill != where:
                    for i in range(n):
                        buf[fill + i] = buf[where + i]
                buf[fill] = state
                fill += n
                then = number + 1
            where = behind
        self._fill = fill
        return first

    # --- the device ---------------------------------------------------------------------------

    def _read(self, block, at, is_strict):
        # Read a group to _start -> its cells, 0 if there is none.
        buf = self._buf
        start = self._start
        self._load(block, at, self._head)
        n = buf[start + 2] | buf[start + 3] << 8
        cells = n // self._cell
        if (
            buf[start] != _MAGIC
            or buf[start + 1] != _VERSION
            or not 0 < cells <= self._most
            or n % self._cell
            or at + cells > self._cells
            or _number_at(buf, start + 8) != (block * self._cells + at) // self._page_cells
        ):
            return 0
        # Page by page, as a read need not go over the end of a device's block.
        before = at % self._page_cells
        for k in range((before + cells + self._page_cells - 1) // self._page_cells):
            self._load(block, at - before + k * self._page_cells, self._parts[before][k])
        view = self._sums[cells - 1]
        self._number = _number_at(buf, start + 4)
        self._stop = n = start + n - _CRC
        if is_strict:
            salt = buf[n + 3] & 0xC0
            buf[n + 3] ^= salt
            crc = _number_at(buf, n)
            pack_into("<I", buf, n, 0)
            buf[n + 3] = salt
            if _crc(view) != crc:
                return 0
        return cells

    def _entry(self, where):
        # -> where the next entry from there on stands in the group, 0 for none; _number is its
        # number.
        buf = self._buf
        while where < self._stop and buf[where] < _TITLE:
            if buf[where] == _NUMBER:
                self._number = _number_at(buf, where + 1)
            where += _NOTE
        return where if where < self._stop and 0x40 <= buf[where] < 0x80 else 0

    def _entry_behind(self, where):
        self._number += 1
        return self._entry(where + 5 + (self._buf[where + 1] << 8 | self._buf[where + 2]))

    def _load(self, block, at, view):
        at = (block % self._blocks * self._cells + at) * self._cell
        try:
            if not self._dev.readblocks(at // self._dev_bytes, view, at % self._dev_bytes):
                return
        except OSError:
            pass
        raise MQTTError(_JOURNAL)

    def _is_put(self, at, view):
        # Flash that is worn out says nothing, so what is programmed is read back.
        at = (self._newest % self._blocks * self._cells + at) * self._cell
        block = at // self._dev_bytes
        at %= self._dev_bytes
        try:
            return not (
                self._dev.writeblocks(block, view, at)
                or self._dev.readblocks(block, self._back, at)
                or self._back != view
            )
        except OSError:
            return False

    def _erase(self, block):
        # A device fails by an error or, as MicroPython's filesystems ask it, by a number.
        block = block % self._blocks * self._dev_blocks
        try:
            for k in range(block, block + self._dev_blocks):
                if self._dev.ioctl(6, k):
                    return False
            return True
        except OSError:
            return False


def _number_at(buf, at):
    # -> a number of 30 bits, -1 if there is a larger one, which would take memory.
    if buf[at + 3] > 0x3F:
        return -1
    return buf[at] | buf[at + 1] << 8 | buf[at + 2] << 16 | buf[at + 3] << 24


def _crc(view):
    # -> -1 if it has more than 30 bits, too.
    try:
        heap_lock()
        try:
            crc = crc32(view)
        finally:
            heap_unlock()  # no jump before it, or Ctrl-C would leave it locked
        if crc < 0x40000000:
            return crc
    except MemoryError:
        pass
    return -1


def _seal(buf, view, end):
    # The highest two bits of the last byte are tried until the CRC has 30 bits.
    pack_into("<I", buf, end - _CRC, 0)
    crc = _crc(view)
    while crc < 0:
        buf[end - 1] += 0x40
        crc = _crc(view)
    salt = buf[end - 1]
    pack_into("<I", buf, end - _CRC, crc)
    buf[end - 1] |= salt
