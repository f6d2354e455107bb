"""Groups of bytes in a ring of erase blocks: whole or not at all, all blocks alike.

    | spare | spare | oldest | ... | newest: group group group - - |

What is appended collects in RAM; `program()` seals it with a CRC, programs it as one
group and reads it back.  A block is erased just before it is written again, and every
group names the oldest block that counts, so whatever a cut leaves of an erased block is
older than the log.  A block that fails is passed over.  Knows nothing of messages.
docs/reference/journal-format.md has every byte.
"""

from binascii import crc32
from struct import pack_into

from micropython import const, heap_lock, heap_unlock

from . import MQTTError

FORMAT_VERSION = 2

# A group: magic, version, length, blocks back to the oldest, last id, page, session; CRC.
_MAGIC = const(0x4A)
_HEAD_BYTES = const(12)
_CRC_BYTES = const(4)
_BLANK = b"\xff" * 64
_JOURNAL = const(262)
_MOST_SKIPPED = const(2)  # blocks in a row; if more fail, it is not for the blocks


class Ring:
    """`opening.make_ring()` gives it its attributes: the layout (`page_bytes`,
    `cell_bytes`, `block_pages`, `blocks`, `pages`, `device`, `device_bytes`,
    `device_blocks` of an erase block), and what is allocated once.

    `buf` is an image of the next page, in which the group begins at `start`; `end` is
    where the next record goes.  Pages and blocks are numbered on and on; modulo the
    ring is their place.  `oldest` is the first block that counts, `newest` the last
    one that holds a group, -1 for none.  `packet` is what `read()` fills.  `title` ends
    each block's first group; its bytes from `state_at` on are the caller's.
    `session` and `last_id` go into each group's head.  `bad`: by place, 1 for a block that
    was passed over when the ring came to it last; `bad_blocks` of them, and `skipped` are
    being passed over now.
    """

    def spare(self):
        """-> blocks that are not in the log, but for those that are bad."""
        n = self.blocks - 1 - self.newest + self.oldest
        if self.bad_blocks:
            for i in range(self.newest + 1, self.oldest + self.blocks):
                n -= self.bad[i % self.blocks]
        return n

    def cost(self, n):
        """-> pages that a group with `n` bytes takes."""
        return self.count_pages(_HEAD_BYTES + n + _CRC_BYTES)

    def count_pages(self, n):
        """-> pages that `n` bytes take."""
        return (n + self.page_bytes - 1) // self.page_bytes

    # --- writing ----------------------------------------------------------------

    def is_empty(self):
        """Was nothing appended since `program()`?"""
        return self.end == self.start + _HEAD_BYTES

    def has_room(self, n):
        """Is there room for `n` more bytes at `buf[end]`?  If not: `program()`."""
        if self.start and self.end + n > self.page_bytes - _CRC_BYTES:
            self._leave_page(1)
        return self.end - self.start + n <= self.most_bytes

    def _leave_page(self, pages):
        # Move the group to the start of a fresh page.
        buf = self.buf
        start = self.start
        for i in range(_HEAD_BYTES, self.end - start):
            buf[i] = buf[start + i]
        self.end -= start
        self.start = 0
        self.next_page += pages

    def program(self):
        """Make the group durable -> the place, modulo the ring, of its first page; -1 if the
        device fails: nothing is lost then, and the next call takes another page.

        Its bytes lie there as they lay in `buf`.  Raises MQTTError (JOURNAL) if there is no
        other page.
        """
        tail_bytes = _CRC_BYTES if self.start else self._place()
        if not tail_bytes or not self._is_done(tail_bytes):
            self._fail(tail_bytes == _CRC_BYTES)
            return -1
        self._failures = 0
        if self.skipped or self.bad_blocks:
            self._mark_bad()
        start = self.start + self._length
        pages = 0
        if start >= self.page_bytes:
            start = 0
            pages = self._pages
        # At one stroke: Ctrl-C comes in at jumps, and what is not done is done again.
        self.newest = self.next_page // self.block_pages
        self.told = self.oldest
        self.next_page += pages
        self.start = start
        self.end = start + _HEAD_BYTES
        return self._page

    def _is_done(self, tail_bytes):
        self._seal(tail_bytes)
        try:
            if self._write(self._page * self.page_bytes):
                return True
        except BaseException:  # with `finally`, its frame would lie on the heap
            self._leave_page(self._pages)
            raise
        # The page may be half programmed: never again with other bytes.
        self._leave_page(self._pages)
        return False

    def _fail(self, is_begun):
        # A block, one that has groups or one that is begun, took none.  Twice, or once
        # where it was bad before: another one has to.
        self._failures += 1
        if is_begun:
            if self._failures > 1:
                self._failures = 0
                self.next_page = (self.newest + 1) * self.block_pages
        elif self._failures > 1 or self.bad[(self.newest + 1 + self.skipped) % self.blocks]:
            self._failures = 0
            # It may hold the group all the same, which is not to be found behind later ones.
            self.erase(self.newest + 1 + self.skipped)
            self.skipped += 1

    def _mark_bad(self):
        # A block took a group at last; those between it and the newest did not.
        block = self.next_page // self.block_pages
        for i in range(self.newest + 1, block + 1):
            place = i % self.blocks
            self.bad_blocks += (i < block) - self.bad[place]
            self.bad[place] = i < block
        self.skipped = 0

    def forgive(self):
        """Blocks that failed are to be tried again: it may have passed."""
        for i in range(self.blocks):
            self.bad[i] = 0
        self.bad_blocks = 0

    def _place(self):
        # Find room for a group on fresh pages -> bytes needed behind its records, 0 if the
        # device fails.
        left = -self.next_page % self.block_pages
        block = self.newest + 1
        if (
            left >= self.count_pages(self.end + _CRC_BYTES)
            and self.next_page < block * self.block_pages
        ):
            return _CRC_BYTES
        # None is erased before a group says that it does not count; and by passing over
        # others none takes the last one, which is for copies.
        if self.skipped:
            block += self.skipped
            if self.skipped > _MOST_SKIPPED or self.blocks <= max(
                block - self.oldest + 1, block - self.told
            ):
                self.skipped = 0
                block = self.newest + 1
        if block - self.told >= self.blocks:
            raise MQTTError(_JOURNAL, "journal has no spare block left")
        self.next_page = block * self.block_pages
        return self.tail_bytes if self.erase(block) else 0

    def erase(self, block):
        """Erase one block of the ring -> did the device do it?"""
        block = block % self.blocks * self.device_blocks
        for i in range(block, block + self.device_blocks):
            if not self._erase(i):
                return False
        return True

    def _erase(self, i):
        # A device fails by an error or, as MicroPython's filesystems ask it, by a number.
        try:
            return not self.device.ioctl(6, i)
        except OSError:
            return False

    def _write(self, at):
        # -> does the device hold it now?  Flash that is worn out says nothing, so it is
        # read back.
        try:
            return not self.device.writeblocks(
                at // self.device_bytes, self._view, at % self.device_bytes
            ) and self._holds(at)
        except OSError:
            return False

    def _holds(self, at):
        for i in range(self._pages):
            if (
                self.device.readblocks(at // self.device_bytes, self.back, at % self.device_bytes)
                or self.back != self.page_views[i]
            ):
                return False
            at += self.page_bytes
        return True

    def read(self, at):
        """Fill `packet` from the address `at` on.  Raises MQTTError (JOURNAL)."""
        try:
            if not self.device.readblocks(
                at // self.device_bytes, self.packet, at % self.device_bytes
            ):
                return
        except OSError:
            pass
        raise MQTTError(_JOURNAL)

    def _seal(self, tail_bytes):
        # Then `_view` shows what to program: `_pages` at the place `_page`.
        cells = (self.end - self.start + tail_bytes - 1) // self.cell_bytes + 1
        self._length = cells * self.cell_bytes
        self._page = self.next_page % self.pages
        at = self.start + self._length
        self._pages = self.count_pages(at)
        self._fill(self._pages * self.page_bytes)
        self._write_head(self._length)
        at -= _CRC_BYTES
        if tail_bytes > _CRC_BYTES:
            pack_into(self.title_format, self.buf, at - len(self.title), self.title)
        self._view = self.views[self.start // self.cell_bytes][cells - 1]
        self._write_crc(at)
        self._view = self.views[0][self._pages * self.page_bytes // self.cell_bytes - 1]

    def _fill(self, end):
        # The buffer has room for a little too much.
        at = self.end
        while at < end:
            pack_into("64s", self.buf, at, _BLANK)
            at += 64

    def _write_head(self, length):
        buf = self.buf
        at = self.start
        pack_into("<BBH", buf, at, _MAGIC, FORMAT_VERSION, length)
        length = self.next_page // self.block_pages - self.oldest
        pack_into("<BH", buf, at + 4, length, self.last_id)
        pack_into("<IB", buf, at + 7, self.next_page, self.session)

    def _write_crc(self, at):
        buf = self.buf
        pack_into("<I", buf, at, 0)
        heap_lock()
        crc = _salted_crc(self._view, buf, at + 3)
        salt = buf[at + 3]
        pack_into("<I", buf, at, crc)
        buf[at + 3] |= salt

    def check(self, n):
        """-> a CRC of the first `n` bytes of `packet`; those behind them are lost."""
        pack_into("64s", self.packet, n, b"")
        heap_lock()
        return _salted_crc(self.packet_views[n >> 6], self.packet, n | 63)


def _salted_crc(view, buf, last):
    # Entered with the heap locked: see umqtt31.client.
    heap_unlock()
    # A CRC of more than 30 bits would be a big integer, which allocates: it is
    # not let, and the last byte of `view` tried with the next of its two highest bits,
    # of which just one makes the highest two of the CRC 0.
    while True:
        try:
            heap_lock()
            try:
                crc = crc32(view)
            finally:
                heap_unlock()  # no jump before, or Ctrl-C would leave it locked
            if crc < 0x40000000:
                return crc
        except MemoryError:
            pass
        buf[last] += 0x40
