"""Opening a journal: sizes, reading the log, what goes on from there.

`journal` needs this once: Journal.open() imports it, and then its memory is free again.
docs/reference/journal-format.md has every byte.
"""

import sys
from array import array
from binascii import crc32
from struct import pack, unpack_from

from micropython import const

from . import MQTTError

_MAGIC = const(0x4A)
_VERSION = const(3)
_HEAD = const(12)
_CRC = const(4)
_NOTE = const(5)
_TITLE_BYTES = const(37)  # without the client id
_LEAST = const(32)

_NUMBER = const(1)
_RECEIVED = const(3)
_ONLINE = const(4)
_HOLD = const(5)
_RENEW = const(7)
_ID_SET = const(8)
_BITS = const(9)
_OLDEST = const(10)
_TITLE = const(11)

_JOURNAL = const(262)
_IDS = const(30)  # of a set


def open_journal(
    device, sizes, is_erasing, client_id, level, buffer_size, most, hold, sets, ring_bytes
):
    """-> what Journal.open() keeps, in its order."""
    if sys.implementation.name == "micropython":
        # Only the caller refers to this module from here on.
        package, _, name = __name__.rpartition(".")
        del sys.modules[__name__]
        delattr(sys.modules[package], name)
    log = _Log(device, sizes, client_id, level, is_erasing, buffer_size, sets)
    try:
        log.read()
        log.fit(most)
    except MQTTError:
        if not log.is_erasing:
            raise
        for block in range(log.blocks * log.device_blocks):
            if device.ioctl(6, block):
                raise MQTTError(_JOURNAL)
        log.read()
        log.fit(most)
    for first, bits, _ in log.held:
        for k in range(_IDS):
            if bits >> k & 1:
                try:
                    hold(first * _IDS + k)
                except IndexError:
                    _raise("max_awaiting_rel")
    return log.hand_over(min(most, ring_bytes // 12))


class _Log:
    # Raises ValueError where the sizes or the largest packet do not fit.
    def __init__(self, device, sizes, client_id, level, is_erasing, buffer_size, sets):
        page, cell, erase = sizes
        if not hasattr(device, "ioctl"):
            raise TypeError("block_device has no ioctl()")
        self.device = device
        self.device_bytes = device.ioctl(5, 0)
        is_fit = True
        for value in sizes:
            is_fit = is_fit and isinstance(value, int) and value >= _LEAST
        is_fit = is_fit and not (erase % self.device_bytes or erase % page)
        cell = is_fit and min(cell, page)
        if not is_fit or page % cell:
            raise ValueError(
                "cell_bytes (32 or more), program_bytes and erase_bytes, and the device's %d,"
                " must divide each other" % self.device_bytes
            )
        self.device_blocks = erase // self.device_bytes
        self.cell = cell
        self.page_cells = page // cell
        self.cells = erase // cell
        self.blocks = device.ioctl(4, 0) * self.device_bytes // erase
        self.level = level
        self.is_erasing = is_erasing
        # What each title begins with, and the client id at its end.
        self.layout = pack("<B4H", _TITLE, page, cell, erase // page, self.blocks)
        self.client_id = client_id
        self.title_cells = self.count(_TITLE_BYTES + len(client_id) + _CRC)
        self.longest = buffer_size + 5
        n = self.count(_HEAD + self.longest + _CRC)
        self.most = (n + self.page_cells - 1) // self.page_cells * self.page_cells
        # Of each block the title, what a group leaves at its end, and two cells for reclaiming.
        self.room = self.cells - self.title_cells - self.most - 1
        if self.room < self.most:
            raise ValueError("packets of %d bytes need larger erase_bytes" % buffer_size)
        if not 4 <= self.blocks <= 255:
            raise ValueError("journal needs 4 to 255 blocks, not %d" % self.blocks)
        n = self.most * self.cell - _HEAD - _CRC - _NOTE
        n = (2 * _NOTE * sets + n - 1) // n * (_HEAD + _CRC) + 2 * _NOTE * sets
        self.room_held = min(self.count(n), (self.blocks - 3) * self.room - self.most)

    def count(self, n):
        return (n + self.cell - 1) // self.cell

    # --- reading ------------------------------------------------------------------------------

    def load(self, place, at, n):
        """-> `n` bytes from cell `at` on of the block at this place."""
        # In pieces of a page at most, as a read need not go over the end of a device's block.
        buf = bytearray(n)
        view = memoryview(buf)
        at = (place % self.blocks * self.cells + at) * self.cell
        page = self.page_cells * self.cell
        done = 0
        while done < n:
            end = min(n, done + page - (at + done) % page)
            where = at + done
            if self.device.readblocks(
                where // self.device_bytes, view[done:end], where % self.device_bytes
            ):
                raise OSError(5)
            done = end
        return buf

    def group(self, place, at):
        """-> a group with a right check of any version, None if there is none."""
        head = self.load(place, at, _HEAD)
        n = head[2] | head[3] << 8
        if head[0] != _MAGIC or not _LEAST <= n <= (self.cells - at) * self.cell:
            return None
        buf = self.load(place, at, n)
        salt = buf[n - 1]
        crc = unpack_from("<I", buf, n - _CRC)[0] & 0x3FFFFFFF
        buf[n - _CRC :] = bytes((0, 0, 0, salt & 0xC0))
        return buf if crc32(buf) == crc else None

    def is_blank(self, place, at, cells):
        return self.load(place, at, cells * self.cell) == b"\xff" * (cells * self.cell)

    def title(self, place):
        """-> the title of the block at this place, None if it has none."""
        for at in range(0, self.cells, self.page_cells):
            buf = self.group(place, at)
            if buf and buf[1] != _VERSION:
                _refuse("has format version %d: send it with the release that wrote it" % buf[1])
            if buf and buf[_HEAD] == _TITLE:
                client_id = bytes(buf[_TITLE_BYTES:-_CRC]).rstrip(b"\xff")
                if client_id != self.client_id:
                    _refuse("is of client %s" % client_id)
                if buf[_HEAD : _HEAD + 9] != self.layout:
                    _refuse("has another layout")
                page = unpack_from("<I", buf, 8)[0]
                if page * self.page_cells % (self.blocks * self.cells) != place * self.cells + at:
                    _refuse("began at another place")
                return buf
        return None

    def walk(self, block):
        """Yield the groups of a block; count what cannot be read."""
        at = 0
        bad = -1
        while at < self.cells:
            buf = self.group(block, at)
            page = (block * self.cells + at) // self.page_cells
            if buf and not len(buf) % self.cell and unpack_from("<I", buf, 8)[0] == page:
                yield buf
                at += len(buf) // self.cell
                continue
            if page != bad and not self.is_blank(block, at, 1):
                bad = page
                self.corrupt += 1
            at += 1

    def read(self):
        """Find the newest block, which says where the log begins, and read it from there."""
        self.corrupt = self.first = self.next = self.end = self.sent = self.last_id = 0
        self.named = 0  # of the messages before this number the last id is known
        self.session = self.level
        self.held = []  # [set, bits, the block from which on all of these are held]
        self.costs = array("H")  # by number from `first` on; 0: not in the log
        self.states = bytearray()
        self.twice = set()  # numbers of messages that stand there again
        self.sizes = {}  # of packets that are too large, by number
        self.oldest = 0
        newest = -1
        there = []
        for place in range(self.blocks):
            title = self.title(place)
            if title:
                block = unpack_from("<I", title, 8)[0] * self.page_cells // self.cells
                there.append(block)
                if block > newest:
                    newest = block
                    self.oldest = block - title[21]
                    self.first = unpack_from("<I", title, 25)[0]
        self.newest = newest
        self.at = self.cells
        if newest < 0:
            for place in range(self.blocks):
                for _ in self.walk(place):
                    pass
            return
        for buf in self.walk(newest):
            self.records(buf, self.on_oldest)
        self.corrupt = 0
        # A log without a spare block was cut while the oldest one was copied; the newest holds
        # nothing but such copies, so it is left out and written anew.
        if newest - self.oldest + 1 >= self.blocks:
            newest -= 1
        for block in range(self.oldest, newest + 1):
            if block in there:
                self.newest = block
                for buf in self.walk(block):
                    if buf[_HEAD] != _TITLE:
                        self.most = max(self.most, len(buf) // self.cell)
                    self.records(buf, self.on_record)
        if newest == self.newest:
            self.at = self.used(newest)

    def used(self, block):
        """-> cells up to its last page that is not blank."""
        n = 0
        for at in range(0, self.cells, self.page_cells):
            if not self.is_blank(block, at, self.page_cells):
                n = at + self.page_cells
        return n

    # --- records ------------------------------------------------------------------------------

    def records(self, buf, on_record):
        """Call `on_record(kind, number, buf, at)` for each record of a group."""
        number = unpack_from("<I", buf, 4)[0]
        at = _HEAD
        end = len(buf) - _CRC
        if buf[at] == _TITLE:
            on_record(_TITLE, number, buf, at)
            return
        while at < end and buf[at] != 0xFF:
            if buf[at] >= 0x40:
                on_record(buf[at], number, buf, at)
                number += 1
                at += 5 + (buf[at + 1] << 8 | buf[at + 2])
            else:
                if buf[at] == _NUMBER:
                    number = unpack_from("<I", buf, at + 1)[0]
                else:
                    on_record(buf[at], unpack_from("<I", buf, at + 1)[0], buf, at)
                at += _NOTE

    def on_oldest(self, kind, number, buf, at):
        if kind == _OLDEST:
            self.oldest = number

    def on_record(self, kind, number, buf, at):
        if kind >= 0x40:
            self.on_entry(kind, number, buf, at)
        elif kind == _TITLE:
            # What was so before, of which the records may be gone.
            self.session = buf[22]
            self.last_id, first, next_number, self.sent = unpack_from("<HIII", buf, 23)
            self.next = max(self.next, next_number)
            self.end = max(self.end, number)
            self.named = number
        elif kind < _ONLINE:
            k = number - self.first
            if 0 <= k < len(self.states):
                self.states[k] = 0x70 if kind == _RECEIVED else 1
            self.next = max(self.next, number + 1)
        elif kind == _ONLINE:
            self.sent = number
            self.end = max(self.end, number)  # of messages of which the entry may be spoilt
        elif kind < _RENEW:
            self.hold(number // _IDS, 1 << number % _IDS, kind == _HOLD)
        elif kind == _RENEW:
            self.session = number
            self.sent = 0
            self.held = []
            for k in range(len(self.states)):
                if self.states[k] == 0x70:
                    self.states[k] = 0x50
        elif kind == _ID_SET:
            self.set = number
        elif kind == _BITS:
            self.hold(self.set, number, True)

    def on_entry(self, kind, number, buf, at):
        n = 5 + (buf[at + 1] << 8 | buf[at + 2])
        if number + 1 >= self.end:  # the newest, also where it is there twice
            self.end = self.named = number + 1
            self.last_id = buf[at + 3] << 8 | buf[at + 4]
        if kind & 8:
            self.sent = number + 1
        k = number - self.first
        if k >= 0:
            while len(self.states) <= k:
                self.states.append(0)
                self.costs.append(0)
            if self.costs[k]:
                self.twice.add(number)
            self.costs[k] = self.count(_HEAD + n + _CRC)
            self.states[k] = kind & 0xF0
            if n > self.longest:
                self.sizes[number] = n - 5
            if kind >= 0x70:
                self.next = max(self.next, number + 1)

    def hold(self, first, bits, is_held):
        for row in self.held:
            if row[0] == first:
                break
        else:
            row = [first, 0, 0]
            self.held.append(row)
        if not row[1] & ~bits:
            row[2] = self.newest
        row[1] |= bits
        if not is_held:
            row[1] ^= bits

    # --- what is left ---------------------------------------------------------------------------

    def fit(self, most):
        """Raise MQTTError where there is more than fits."""
        self.next = max(self.next, self.first)
        self.end = max(self.end, self.next)
        if self.end > self.named:  # the newest are spoilt: far beyond the ids that they may have
            self.last_id = (self.last_id + self.end - self.named + 999) % 65535 + 1
        # Those of which the state is known one by one.
        self.live = []
        for k in range(min(len(self.states), self.next - self.first)):
            if self.states[k] > 1:
                self.live.append(k)
        n = len(self.live) + self.end - self.next
        level = self.session & 7
        if n and (level == 5) != (self.level == 5):
            _refuse(
                "holds messages of level %d, not %d: send them at that level" % (level, self.level)
            )
        self.is_erasing = False  # all that is here is the client's own
        if n > most:
            _raise("max_mqueue_len")
        n = 0
        for number, size in self.sizes.items():
            if self.states[number - self.first] > 1:
                n = max(n, size)
        if n:
            _raise("buffer_size to %d" % n)

    def hand_over(self, rows):
        cell = self.cell
        rows = max(rows, len(self.live))
        none = [0] * rows
        numbers = array("I", none)
        states = bytearray(none)
        costs = array("H", none)
        entries = sent = 0
        for k in self.live:
            numbers[entries] = self.first + k
            states[entries] = self.states[k]
            costs[entries] = self.costs[k]
            sent += self.first + k < self.sent
            entries += 1
        rows = entries
        used = 0
        for k in range(len(self.states)):
            if self.states[k] > 1:
                used += self.costs[k]
        entries += self.end - self.next
        sent += max(0, min(self.sent, self.end) - self.next)
        # In front of a group is what shares its page or a title, and the room for a packet.
        before = max(self.page_cells - 1, self.title_cells)
        start = max(before, self.count(self.longest)) * cell
        size = (self.most + self.page_cells) * cell
        buf = bytearray(start + size + self.longest + 27)
        view = memoryview(buf)
        page = self.page_cells * cell
        parts = []
        heads = []
        for k in range(before + 1):
            at = start - k * cell
            heads.append(view[at:start])
            row = []
            while at < start + self.most * cell:
                row.append(view[at : at + page])
                at += page
            parts.append(row)
        sums = []
        for k in range(self.most):
            sums.append(view[start : start + (k + 1) * cell])
        title = bytearray(b"\xff" * (self.title_cells * cell))
        title[: _HEAD + 9] = pack("<BBHII", _MAGIC, _VERSION, len(title), 0, 0) + self.layout
        title[_TITLE_BYTES : _TITLE_BYTES + len(self.client_id)] = self.client_id
        listed = self.newest
        for _, bits, block in self.held:
            if bits:
                listed = min(listed, block)
        ready = self.newest
        while ready < self.newest + 2 and not self.used(ready + 1):
            ready += 1
        return (
            self.device_bytes, self.device_blocks, cell, self.page_cells, self.cells,
            self.blocks, title, self.title_cells, buf, start, self.most,
            parts, heads, sums, view[start : start + _HEAD], bytearray(page), self.room,
            self.room_held, numbers, array("H", none), states, costs, rows,
            self.next, self.end, self.oldest, self.newest, self.at, ready,
            self.sent, used, self.session, self.last_id, self.corrupt, entries,
            sent, listed, self.twice,
        )  # fmt: skip


def _refuse(text):
    raise MQTTError(_JOURNAL, "journal %s; erase_foreign=True would erase it" % text)


def _raise(name):
    raise MQTTError(_JOURNAL, "journal holds more than fits: raise " + name)
