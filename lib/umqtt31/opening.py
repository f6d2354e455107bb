"""Opening a journal: sizes, reading the log, what goes on from there.

A page of `journal`'s and `ring`'s own books, needed once: `Journal.open()` imports it
into a reference of its own, and after `recover()` its memory is free again.
docs/reference/journal-format.md has every byte and the reasons.
"""

import sys
from array import array
from binascii import crc32
from struct import pack

from micropython import const

from . import MQTTError
from .ring import FORMAT_VERSION

_JOURNAL = const(262)
_MAGIC = const(0x4A)
_HEAD_BYTES = const(12)
_CRC_BYTES = const(4)
_LEAST_BYTES = const(32)
_STATE_BYTES = const(34)  # of the title: 8 runs of held ids, and the end
_SLACK_BYTES = const(64)  # behind the buffer, for copies of fixed size

_ENTRY = const(0x80)
_QOS = const(0x03)
_PUBREC = const(0x08)
_SENT = const(0x10)
_NOTE_PUBREC = const(1)
_NOTE_REMOVE = const(2)
_NOTE_ONLINE = const(3)
_NOTE_CLEAR = const(4)
_NOTE_HOLD = const(5)
_NOTE_RELEASE = const(6)
_ENTRY_BYTES = const(9)
_NOTE_BYTES = const(5)
_END = const(0xFF)
_LEVEL = const(7)
_CLEAN = const(0x80)


def open_journal(journal, client_id, slots, slot_bytes, held_slots):
    """`Journal.open()`, but for the reclaiming."""
    if sys.implementation.name == "micropython":
        # Only the journal refers to this module from here on.
        package, _, name = __name__.rpartition(".")
        del sys.modules[__name__]
        delattr(sys.modules[package], name)
    _make_ring(journal._ring, journal._layout, client_id, slot_bytes)
    _set_capacity(journal, slot_bytes)
    ring = journal._ring
    log = _Log(journal, slots)
    try:
        log.read()
    except MQTTError:
        if not journal._erase_foreign:
            raise
        for block in range(ring.blocks):
            if not ring.erase(block):
                raise MQTTError(_JOURNAL)
        log = _Log(journal, slots)
        log.read()
    journal.corrupt_pages = log.bad
    log.settle(slots, held_slots)


def hand_over(journal, session):
    """`Journal.recover()`."""
    number = journal._number
    for slot in sorted(range(len(number)), key=lambda slot: number[slot]):
        kind = journal._kind[slot]
        if kind:
            has_pubrec = kind & _PUBREC != 0
            packet_id = journal._packet_id[slot]
            session.restore(slot, packet_id, kind & _QOS, has_pubrec, kind & _SENT != 0)
    held = journal._held
    for k in range(0, held.end, 3):
        session.restore_run(held.runs[k], held.runs[k + 1])
    session.restore_last_id(journal._ring.last_id)
    session.restore_clean(journal._ring.session & _CLEAN != 0)


def _make_ring(ring, layout, client_id, slot_bytes):
    # Everything that the ring keeps is allocated here.
    device, page_bytes, cell_bytes, erase_bytes = layout
    if not hasattr(device, "ioctl"):
        raise TypeError("block_device has no ioctl()")
    device_bytes = device.ioctl(5, 0)
    whole = True
    for value in layout[1:]:
        whole = whole and isinstance(value, int) and value >= _LEAST_BYTES
    whole = whole and not (erase_bytes % device_bytes or erase_bytes % page_bytes)
    cell_bytes = whole and min(cell_bytes, page_bytes)
    if not whole or page_bytes % cell_bytes:
        text = "cell_bytes (32 or more), program_bytes and erase_bytes, and the"
        raise ValueError(text + " device's %d, must divide each other" % device_bytes)
    ring.device = device
    ring.device_bytes = device_bytes
    ring.device_blocks = erase_bytes // device_bytes
    ring.page_bytes = page_bytes
    ring.cell_bytes = cell_bytes
    ring.block_pages = erase_bytes // page_bytes
    ring.blocks = device.ioctl(4, 0) * device_bytes // erase_bytes
    ring.pages = ring.blocks * ring.block_pages
    n = len(client_id)
    layout = (page_bytes, cell_bytes, ring.block_pages, ring.blocks)
    size = 8 + n + _STATE_BYTES + 2
    ring.state_at = 8 + n
    ring.title_format = "%ds" % size
    layout_format = "<4H%ds%dsH" % (n, _STATE_BYTES)
    ring.title = bytearray(pack(layout_format, *layout, client_id, b"", size))
    ring.tail_bytes = size + _CRC_BYTES
    # A group of any length has its title behind it if it comes to begin a block.
    pages = ring.cost(_ENTRY_BYTES + slot_bytes)
    ring.most_bytes = pages * page_bytes - _CRC_BYTES
    pages += ring.count_pages(ring.tail_bytes)
    group_bytes = pages * page_bytes
    ring.packet = bytearray(slot_bytes + _SLACK_BYTES)
    view = memoryview(ring.packet)
    ring.packet_views = [view[:i] for i in range(64, slot_bytes + 65, 64)]
    ring.buf = bytearray(group_bytes + slot_bytes + _SLACK_BYTES)
    ring.start = 0
    ring.end = _HEAD_BYTES
    ring.back = memoryview(bytearray(page_bytes))
    ring.bad = bytearray(ring.blocks)
    ring.bad_blocks = ring.skipped = ring._failures = 0
    ring.views = []  # [cell in which a group starts][its length in cells - 1]
    view = memoryview(ring.buf)
    ring.page_views = [view[i : i + page_bytes] for i in range(0, group_bytes, page_bytes)]
    for start in range(0, page_bytes, cell_bytes):
        end = page_bytes if start else group_bytes
        ring.views.append([view[start:i] for i in range(start + cell_bytes, end + 1, cell_bytes)])


def _set_capacity(journal, slot_bytes):
    # Messages are counted as if each were alone in its pages.  With this limit
    # reclaiming never gets stuck: docs/reference/journal-format.md.
    ring = journal._ring
    least = ring.cost(_ENTRY_BYTES + slot_bytes) + ring.count_pages(ring.tail_bytes) - 1
    most = ring.block_pages - least
    if least > most:
        raise ValueError("packets of %d bytes need larger erase_bytes" % slot_bytes)
    journal._block_pages = most  # that count for messages
    journal._capacity = (ring.blocks - 3) * most
    if journal._capacity < least or ring.blocks > 255 or ring.pages > 0xFFFF:
        raise ValueError("journal needs 4 to 255 blocks, not %d" % ring.blocks)
    journal._format = "%ds" % slot_bytes


class _Log:
    """What is on flash.  `bad`: pages that were passed over as unreadable."""

    def __init__(self, journal, slots):
        self.journal = journal
        self.ring = ring = journal._ring
        self.buf = ring.buf
        self.page_cells = ring.page_bytes // ring.cell_bytes
        blank = memoryview(b"\xff" * ring.page_bytes)
        self.blank = [blank[: i * ring.cell_bytes] for i in range(self.page_cells + 1)]
        self.title = bytes(ring.title[: ring.state_at])  # what each title begins with
        self.visit = self.on_head
        self.bad = 0
        self.index = {}  # number -> slot
        self.lowest = 0  # no slot before it is free
        # A kind of 0 means free; the number gives the order; the group begins in the
        # page; the offset of the packet counts from the start of that page.
        none = [0] * slots
        tables = [bytearray(none)] + [array(code, none) for code in "IHHHHI"]
        journal._kind, journal._number, journal._packet_id = tables[:3]
        journal._length, journal._page, journal._offset, journal._check = tables[3:]
        journal._held = journal.Held(0xFFFF)
        journal._next_number = journal._used = journal._removed = 0
        journal._is_due = journal._is_reclaiming = False
        ring.oldest = ring.last_id = ring.next_page = 0
        ring.session = journal.level
        ring.newest = -1

    # --- pages and groups -------------------------------------------------------------

    def read(self):
        """Find the newest group, which says where the log begins, and read it from there."""
        ring = self.ring
        newest = -1
        resume = 0
        for block in range(ring.blocks):
            page = block * ring.block_pages
            self.has_found = False
            end = page + self.read_page(page, page + ring.block_pages)
            if self.is_bad and not self.has_found:
                self.read_pages(end, page + ring.block_pages)
                end = page + ring.block_pages
            if ring.newest > newest:
                newest = ring.newest
                resume = end
        if newest >= 0:
            page = resume - 1
            self.read_pages(resume, page - page % ring.block_pages + ring.block_pages)
            self.bad = 0
            self.visit = self.on_group
            newest = ring.newest // ring.block_pages
            # A log without a spare block was cut while the oldest block was copied; the
            # newest holds nothing but such copies, so it is left out and written anew.
            if newest - ring.oldest + 1 == ring.blocks:
                newest -= 1
            for block in range(ring.oldest, newest + 1):
                ring.next_page = page = block * ring.block_pages
                self.read_pages(page, page + ring.block_pages)
        ring.newest = newest
        ring.told = ring.oldest
        level = ring.session & _LEVEL
        if self.index and (level == 5) != (self.journal.level == 5):
            _refuse(
                "holds messages of level %d, not %d: send them at that level"
                % (level, self.journal.level)
            )

    def read_pages(self, page, stop):
        while page < stop:
            page += self.read_page(page, stop)

    def read_page(self, page, stop):
        # -> pages that were read; those of a block end at `stop`.
        ring = self.ring
        self.buf = ring.buf
        self.is_bad = False
        self.load(page, 0, ring.views[0][self.page_cells - 1])
        if ring.views[0][self.page_cells - 1] == self.blank[self.page_cells]:
            return 1
        cell = n = 0
        while cell < self.page_cells:
            n = self.group_at(page, cell * ring.cell_bytes, stop)
            if n:
                self.has_found = True
                self.visit(page, cell * ring.cell_bytes, n)
                cell += -(-n // ring.cell_bytes)
                continue
            n = self.page_cells - cell
            if ring.views[cell][n - 1] == self.blank[n]:
                break
            if ring.views[cell][0] != self.blank[1]:
                self.is_bad = True
            cell += 1
        self.bad += self.is_bad
        n = max(1, ring.count_pages(cell * ring.cell_bytes))
        ring.next_page = page + n
        return n

    def load(self, page, first, view):
        at = (page + first) % self.ring.pages * self.ring.page_bytes
        if self.ring.device.readblocks(
            at // self.ring.device_bytes, view, at % self.ring.device_bytes
        ):
            raise OSError

    def group_at(self, page, at, stop):
        # -> length of the group there, 0 if there is none that is whole and of this turn.
        ring = self.ring
        buf = self.buf
        n = buf[at + 2] | buf[at + 3] << 8
        pages = ring.count_pages(at + n)
        if buf[at] != _MAGIC or n < _LEAST_BYTES or page + pages > stop:
            return 0
        if pages * ring.page_bytes > len(buf):  # from larger packets
            self.buf = buf = bytearray(pages * ring.page_bytes)
            buf[: ring.page_bytes] = ring.views[0][self.page_cells - 1]
        if pages > 1:
            view = memoryview(buf)
            for i in range(1, pages):
                self.load(page, i, view[i * ring.page_bytes : (i + 1) * ring.page_bytes])
        if not self.is_sealed(at, n):
            return 0
        if buf[at + 1] != FORMAT_VERSION:
            _refuse("has format version %d: send it with the release that wrote it" % buf[at + 1])
        is_first = not (at or page % ring.block_pages)
        if is_first:
            self.check_title(n - _CRC_BYTES)
        # A page number of an earlier turn of the ring is none; one of another place is of a
        # ring that began elsewhere.
        number = _u32(buf, at + 7)
        if number != page and (page >= ring.pages or number % ring.pages != page):
            if is_first and page < ring.pages:
                _refuse("began at another place")
            return 0
        return n

    def is_sealed(self, at, n):
        buf = self.buf
        views = self.ring.views[at // self.ring.cell_bytes]
        cells = n // self.ring.cell_bytes
        if buf is self.ring.buf and n % self.ring.cell_bytes == 0 and cells <= len(views):
            view = views[cells - 1]
        else:
            view = memoryview(buf)[at : at + n]
        n += at
        salt = buf[n - 1]
        crc = buf[n - 4] | buf[n - 3] << 8 | buf[n - 2] << 16 | (salt & 0x3F) << 24
        buf[n - 1] = salt & 0xC0
        buf[n - 4] = buf[n - 3] = buf[n - 2] = 0
        if crc32(view) == crc:
            return True
        for i in range(4):  # another group may lie over these
            buf[n - 4 + i] = crc >> 8 * i & 0xFF
        buf[n - 1] = salt
        return False

    def check_title(self, end):
        n = self.buf[end - 2] | self.buf[end - 1] << 8
        found = memoryview(self.buf)[max(0, end - n) : end]
        if n == len(self.ring.title) and found[: self.ring.state_at] == self.title:
            return
        client_id = bytes(found)[8 : -_STATE_BYTES - 2]
        if client_id != self.title[8:]:
            _refuse("is of client %s" % client_id)
        _refuse("has another layout")

    # --- records ------------------------------------------------------------------------

    def on_head(self, page, at, n):
        ring = self.ring
        buf = self.buf
        number = _u32(buf, at + 7)
        if number >= ring.newest:
            ring.newest = number
            ring.oldest = number // ring.block_pages - buf[at + 4]
            ring.last_id = buf[at + 5] | buf[at + 6] << 8
            ring.session = buf[at + 11]

    def on_group(self, page, at, n):
        buf = self.buf
        end = at + n - _CRC_BYTES
        if not (at or page % self.ring.block_pages):
            end -= buf[end - 2] | buf[end - 1] << 8
            self.take_held(end + self.ring.state_at)
        page %= self.ring.pages
        at += _HEAD_BYTES
        while at < end and buf[at] != _END:
            number = _u32(buf, at + 1)
            if buf[at] & _ENTRY:
                at += self.take_entry(number, buf, at, page)
            else:
                self.take_note(buf[at], number)
                at += _NOTE_BYTES

    def take_entry(self, number, buf, at, page):
        # -> its length.
        slot = self.index.get(number, -1)
        if slot < 0:
            self.index[number] = slot = self.take_slot()
        journal = self.journal
        journal._kind[slot] = buf[at]
        journal._number[slot] = number
        journal._packet_id[slot] = buf[at + 5] | buf[at + 6] << 8
        journal._length[slot] = n = buf[at + 7] | buf[at + 8] << 8
        journal._page[slot] = page
        at += _ENTRY_BYTES
        journal._offset[slot] = at
        if n <= len(self.ring.packet) - _SLACK_BYTES:
            self.ring.packet[:n] = memoryview(buf)[at : at + n]
            journal._check[slot] = self.ring.check(n)
        if number >= journal._next_number:
            journal._next_number = number + 1
        return _ENTRY_BYTES + n

    def take_slot(self):
        kinds = self.journal._kind
        slot = self.lowest
        while slot < len(kinds) and kinds[slot]:
            slot += 1
        if slot == len(kinds):  # there may have been more in an earlier life
            for table in _tables(self.journal):
                table.append(0)
        self.lowest = slot + 1
        return slot

    def give_slot(self, slot):
        self.journal._kind[slot] = 0
        if slot < self.lowest:
            self.lowest = slot

    def take_note(self, kind, number):
        journal = self.journal
        held = journal._held
        if kind == _NOTE_REMOVE:
            slot = self.index.pop(number, -1)
            if slot >= 0:
                self.give_slot(slot)
        elif kind == _NOTE_PUBREC:
            if number in self.index:
                journal._kind[self.index[number]] |= _PUBREC
        elif kind == _NOTE_HOLD:
            if held.find(number) < 0 and held.has_room(number):
                held.add(number, 0)
        elif kind == _NOTE_RELEASE:
            held.remove(number)
        elif kind == _NOTE_ONLINE:
            journal._mark(_SENT, 0)
        else:
            held.clear()
            journal._mark(0, _SENT | _PUBREC)
            if kind == _NOTE_CLEAR:
                for slot in self.index.values():
                    self.give_slot(slot)
                self.index = {}

    def take_held(self, at):
        # What the title says was so after the group's records: they change nothing then.
        buf = self.buf
        held = self.journal._held
        held.clear()
        while buf[at] | buf[at + 1]:
            held.restore(buf[at] | buf[at + 1] << 8, buf[at + 2] | buf[at + 3] << 8, 0)
            at += 4

    # --- what is left ---------------------------------------------------------------------

    def settle(self, slots, held_slots):
        """Bring all entries that are left into the slots that there are."""
        journal = self.journal
        ring = self.ring
        kinds = journal._kind
        for extra in range(slots, len(kinds)):
            if kinds[extra]:
                slot = 0
                while slot < slots and kinds[slot]:
                    slot += 1
                if slot == slots:
                    _raise("max_mqueue_len")
                for table in _tables(journal):
                    table[slot] = table[extra]
                kinds[extra] = 0
        for slot in range(slots):
            if kinds[slot]:
                journal._used += journal._cost(slot)
                if journal._length[slot] > len(ring.packet) - _SLACK_BYTES:
                    _raise("buffer_size to %d" % journal._length[slot])
        if journal._held.count > held_slots:
            _raise("max_awaiting_rel")
        journal._is_clear = not (self.index or journal._held.count)
        # Until the first renew() the session is what it was.
        ring.session = ring.session & _CLEAN | journal.level


def _u32(buf, at):
    return buf[at] | buf[at + 1] << 8 | buf[at + 2] << 16 | buf[at + 3] << 24


def _refuse(text):
    raise MQTTError(_JOURNAL, "journal %s; erase_foreign=True would erase it" % text)


def _raise(name):
    raise MQTTError(_JOURNAL, "journal holds more than fits: raise " + name)


def _tables(journal):
    return (
        journal._kind,
        journal._number,
        journal._packet_id,
        journal._length,
        journal._page,
        journal._offset,
        journal._check,
    )
