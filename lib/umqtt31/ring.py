"""Groups of bytes in a ring of erase blocks: whole or not at all, all blocks alike.

    | spare | spare | oldest | ... | newest: group group group - - |

What is appended collects in RAM; `program()` seals it with a CRC and programs it as
one group.  A block is erased just before it is written again, and every group names
the oldest block that counts, so whatever a cut leaves of an erased block is older
than the log.  Knows nothing of messages.  docs/reference/journal-format.md has every byte.
"""

from binascii import crc32
from struct import pack_into

from micropython import const, heap_lock, heap_unlock

from .errors import MQTTError

FORMAT_VERSION = 2

# A group: magic, version, length, blocks back to the oldest, last id, page, session; CRC.
_MAGIC = const(0x4A)
_HEAD_BYTES = const(12)
_CRC_BYTES = const(4)
_BLANK = b"\xff" * 64
_JOURNAL = const(262)


class Ring:
    """`opening.make_ring()` gives it its attributes: the layout (`page_bytes`,
    `cell_bytes`, `block_pages`, `blocks`, `pages`, `device`, `device_bytes`,
    `device_blocks` of an erase block), and what is allocated once.

    `buf` is an image of the next page, in which the group begins at `start`; `end` is
    where the next record goes.  Pages and blocks are numbered on and on; modulo the
    ring is their place.  `oldest` is the first block that counts, `newest` the last
    one that holds a group, -1 for none.  `packet` is what `read()` fills.  `title` ends
    each block's first group; its bytes from `state_at` on are the caller's.
    `session` and `last_id` go into each group's head.
    """

    def spare(self):
        """-> blocks that are not in the log."""
        return self.blocks - 1 - self.newest + self.oldest

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
        """Make the group durable -> the place, modulo the ring, of its first page.

        Its bytes lie there as they lay in `buf`.  Raises MQTTError (JOURNAL) if the
        device fails; nothing is lost then, and the next try takes another page.
        """
        self._seal(_CRC_BYTES if self.start else self._place())
        try:
            self._write(self._page * self.page_bytes)
        except BaseException:
            # The page may be half programmed: never again with other bytes.
            self._leave_page(self._pages)
            raise
        self.newest = self.next_page // self.block_pages
        self.told = self.oldest
        self.start += self._length
        if self.start >= self.page_bytes:
            self.start = 0
            self.next_page += self._pages
        self.end = self.start + _HEAD_BYTES
        return self._page

    def _place(self):
        # Find room for a group on fresh pages -> bytes needed behind its records.
        left = -self.next_page % self.block_pages
        block = self.newest + 1
        if (
            left >= self.count_pages(self.end + _CRC_BYTES)
            and self.next_page < block * self.block_pages
        ):
            return _CRC_BYTES
        # A block in which nothing could be programmed yet is begun again, and none is
        # erased before a group says that it does not count.
        if block - self.told >= self.blocks:
            raise MQTTError(_JOURNAL, "journal has no spare block left")
        self.next_page = block * self.block_pages
        self.erase(block)
        return self.tail_bytes

    def erase(self, block):
        """Erase one block of the ring.  Raises MQTTError (JOURNAL)."""
        block = block % self.blocks * self.device_blocks
        for i in range(block, block + self.device_blocks):
            self._erase(i)

    def _erase(self, i):
        try:
            if not self.device.ioctl(6, i):
                return
        except OSError:
            pass
        raise MQTTError(_JOURNAL)

    def _write(self, at):
        try:
            # A device fails by an error or, as MicroPython's filesystems ask it, by a number.
            if not self.device.writeblocks(
                at // self.device_bytes, self._view, at % self.device_bytes
            ):
                return
        except OSError:
            pass
        raise MQTTError(_JOURNAL)

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
        # A CRC of more than 30 bits would be a big integer, which allocates: it is
        # not let, and the last byte tried with the next of its two highest bits,
        # of which just one makes the highest two of the CRC 0.
        buf = self.buf
        pack_into("<I", buf, at, 0)
        crc = _crc_of(self._view)
        while not 0 <= crc < 0x40000000:
            buf[at + 3] += 0x40
            crc = _crc_of(self._view)
        salt = buf[at + 3]
        pack_into("<I", buf, at, crc)
        buf[at + 3] |= salt


def _crc_of(view):
    # -> its CRC, -1 if that would allocate.
    heap_lock()
    try:
        crc = crc32(view)
    except MemoryError:
        crc = -1
    heap_unlock()
    return crc
