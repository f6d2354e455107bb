"""Groups of bytes in a ring of erase blocks: whole or not at all, all blocks alike.

    | spare | spare | oldest | ... | newest: group group group - - |

What is appended collects in RAM; `program()` seals it with a CRC and programs it as
one group.  A block is erased just before it is written again, and every group names
the oldest block that counts, so whatever a cut leaves of an erased block is older
than the log.  Knows nothing of messages.  docs/journal-format.md has every byte.
"""

from binascii import crc32
from struct import pack, pack_into

from micropython import const, heap_lock, heap_unlock

from .errors import JOURNAL, MQTTError

FORMAT_VERSION = 1

# A group: magic, version, length, blocks back to the oldest, last id, page; CRC.
_HEAD = "<BBHBHI"
_MAGIC = const(0x4A)
_HEAD_BYTES = const(11)
_CRC_BYTES = const(4)
_LEAST_BYTES = const(32)
_TITLE_BYTES = const(9)  # at a block's start: the layout, client id, length of both
_BLANK = b"\xff" * 64


class Ring:
    """`page_bytes` are programmed, `erase_bytes` erased at once; `cell_bytes` is where
    groups may begin.  Raises ValueError."""

    def __init__(self, device, page_bytes, cell_bytes, erase_bytes):
        device_bytes = device.ioctl(5, 0)
        whole = not (erase_bytes % device_bytes or erase_bytes % page_bytes)
        if not whole or page_bytes % cell_bytes or cell_bytes < _LEAST_BYTES:
            text = "cell_bytes (32 or more), program_bytes and erase_bytes, and the"
            raise ValueError(text + " device's %d, must divide each other" % device_bytes)
        self.page_bytes = page_bytes
        self.block_pages = erase_bytes // page_bytes
        self.blocks = device.ioctl(4, 0) * device_bytes // erase_bytes
        self.pages = self.blocks * self.block_pages
        self._device = device
        self._device_bytes = device_bytes
        self._cell_bytes = cell_bytes

    def open(self, client_id, most_bytes):
        """Allocate; a group must take `most_bytes` at once -> pages that it needs."""
        n = len(client_id)
        layout = (self.page_bytes, self._cell_bytes, self.block_pages, self.blocks)
        self._title = pack("<4H%dsB" % n, *layout, client_id, n + _TITLE_BYTES)
        self._title_format = "%ds" % len(self._title)
        self._tail_bytes = len(self._title) + _CRC_BYTES
        group_pages = self._count_pages(_HEAD_BYTES + most_bytes + self._tail_bytes)
        self._group_bytes = group_pages * self.page_bytes
        # Pages and blocks are numbered on and on; modulo the ring is their place.
        self.next_page = self.oldest = self.last_id = 0
        # `buf` is an image of the next page, in which the group begins at `start`.
        # The bytes behind its last page are for copies of fixed size.
        self.buf = bytearray(self._group_bytes + most_bytes + len(_BLANK))
        self.start = 0
        self.end = _HEAD_BYTES
        self._views = []  # [cell in which a group starts][its length in cells - 1]
        view = memoryview(self.buf)
        cell = self._cell_bytes
        for start in range(0, self.page_bytes, cell):
            end = self.page_bytes if start else self._group_bytes
            self._views.append([view[start:i] for i in range(start + cell, end + 1, cell)])
        return group_pages

    def spare(self):
        """-> blocks that are neither in the log nor being written."""
        return self.blocks - 1 - self.next_page // self.block_pages + self.oldest

    def cost(self, n):
        """-> pages that a group with `n` bytes takes."""
        return self._count_pages(_HEAD_BYTES + n + _CRC_BYTES)

    def _count_pages(self, n):
        return (n + self.page_bytes - 1) // self.page_bytes

    # --- writing ----------------------------------------------------------------

    def is_empty(self):
        """Was nothing appended since `program()`?"""
        return self.end == self.start + _HEAD_BYTES

    def has_room(self, n):
        """Is there room for `n` more bytes at `buf[end]`?  If not: `program()`."""
        if not self.start:
            return self.end + n <= self._group_bytes - self._tail_bytes
        if self.end + n <= self.page_bytes - _CRC_BYTES:
            return True
        self._leave_page(1)
        return self.has_room(n)

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
        tail_bytes = _CRC_BYTES
        pages = 1
        if not self.start:
            tail_bytes = self._place()
            pages = self._count_pages(self.end + tail_bytes)
        page = self.next_page
        place = page % self.pages
        cells = (self.end - self.start + tail_bytes - 1) // self._cell_bytes
        length = (cells + 1) * self._cell_bytes
        self._seal(length, tail_bytes, pages, page)
        view = self._views[0][pages * self.page_bytes // self._cell_bytes - 1]
        at = place * self.page_bytes
        try:
            self._device.writeblocks(at // self._device_bytes, view, at % self._device_bytes)
        except BaseException as error:
            # The page may be half programmed: never again with other bytes.
            self._leave_page(pages)
            if isinstance(error, OSError):
                raise MQTTError(JOURNAL)
            raise
        self.start += length
        if self.start >= self.page_bytes:
            self.start = 0
            self.next_page += pages
        self.end = self.start + _HEAD_BYTES
        return place

    def _place(self):
        # Find room for a group on fresh pages -> bytes needed behind its records.
        left = -self.next_page % self.block_pages
        if left < self._count_pages(self.end + _CRC_BYTES):
            self.next_page += left
            left = 0
        if left:
            return _CRC_BYTES
        block = self.next_page // self.block_pages
        if block - self.oldest >= self.blocks:
            raise MQTTError(JOURNAL, "no spare block")
        self.erase(block)
        return self._tail_bytes

    def erase(self, block):
        """Erase one block of the ring.  Raises MQTTError (JOURNAL)."""
        n = self.block_pages * self.page_bytes // self._device_bytes
        first = block % self.blocks * n
        try:
            for i in range(first, first + n):
                self._device.ioctl(6, i)
        except OSError:
            raise MQTTError(JOURNAL)

    def _seal(self, length, tail_bytes, pages, page):
        buf = self.buf
        i = self.end
        while i < pages * self.page_bytes:
            pack_into("64s", buf, i, _BLANK)
            i += 64
        back = page // self.block_pages - self.oldest
        pack_into(_HEAD, buf, self.start, _MAGIC, FORMAT_VERSION, length, back, self.last_id, page)
        at = self.start + length - _CRC_BYTES
        if tail_bytes > _CRC_BYTES:
            pack_into(self._title_format, buf, at - len(self._title), self._title)
        # A CRC of more than 30 bits would be a big integer, which allocates: it is
        # not let, and the last byte tried with the next of its two highest bits,
        # of which just one makes the highest two of the CRC 0.
        view = self._views[self.start // self._cell_bytes][length // self._cell_bytes - 1]
        pack_into("<I", buf, at, 0)
        for salt in b"\x00\x40\x80\xc0":
            buf[at + 3] = salt
            heap_lock()
            try:
                crc = crc32(view)
            except MemoryError:
                continue
            finally:
                heap_unlock()
            if crc < 0x40000000:
                break
        pack_into("<I", buf, at, crc)
        buf[at + 3] |= salt

    # --- reading ----------------------------------------------------------------

    def read(self, at, buf):
        """Fill `buf` with what is at the address `at`."""
        self._device.readblocks(at // self._device_bytes, buf, at % self._device_bytes)

    def recover(self, visit):
        """Call `visit(buf, at, end, page)` for each group of the log, oldest first:
        `buf[at:end]` is what was appended, and `buf[0]` the start of `page`, a
        number modulo the ring.  -> pages that were passed over as unreadable.

        Raises MQTTError (JOURNAL) for another client, layout or format version.
        """
        newest = -1
        self._bad = 0
        for block in range(self.blocks):
            for buf, at, _, _ in self._groups(block):
                number = u32(buf, at + 7)
                if number >= newest:
                    newest = number
                    self.oldest = number // self.block_pages - buf[at + 4]
                    self.last_id = buf[at + 5] | buf[at + 6] << 8
        self.next_page = 0
        if newest < 0:
            return self._bad
        newest //= self.block_pages
        # A log without a spare block was cut while the oldest block was copied; the
        # newest holds nothing but such copies, so it is left out and written anew.
        if newest - self.oldest + 1 == self.blocks:
            newest -= 1
        self._bad = 0
        for block in range(self.oldest, newest + 1):
            self.next_page = block * self.block_pages
            for buf, at, end, page in self._groups(block):
                visit(buf, at + _HEAD_BYTES, end, page % self.pages)
        return self._bad

    def _groups(self, block):
        # Generate (buf, start, end of the records, page), reading each page once.
        page = block * self.block_pages
        stop = page + self.block_pages
        while page < stop:
            buf = self.buf
            self._load(buf, page, 0, 1)
            at = pages = 0
            is_bad = False
            while at < self.page_bytes:
                n = buf[at + 2] | buf[at + 3] << 8
                last = self._count_pages(at + n)
                if buf[at] == _MAGIC and n >= _LEAST_BYTES and page + last <= stop:
                    if last * self.page_bytes > len(buf):  # from larger packets
                        buf = bytearray(last * self.page_bytes)
                        self._load(buf, page, 0, 1)
                    self._load(buf, page, 1, last)
                    if _is_sealed(buf, at, at + n) and self._is_current(buf, at, page):
                        end = at + n - _CRC_BYTES
                        if not at and not page % self.block_pages:
                            end = self._check_title(buf, end)
                        yield buf, at, end, page
                        pages = last
                        at += n
                        continue
                is_bad = is_bad or any(b != 0xFF for b in buf[at : at + self._cell_bytes])
                at += self._cell_bytes
            self._bad += is_bad
            pages = pages or is_bad
            if pages:
                self.next_page = page + pages
            page += pages or 1

    def _load(self, buf, page, first, last):
        view = memoryview(buf)
        n = self.page_bytes
        for i in range(first, last):
            self.read((page + i) % self.pages * n, view[i * n : i * n + n])

    def _is_current(self, buf, at, page):
        if buf[at + 1] != FORMAT_VERSION:
            _refuse("has format version %d" % buf[at + 1])
        # A page number of an earlier turn of the ring, or of another ring, is none.
        number = u32(buf, at + 7)
        return number == page or page < self.pages and number % self.pages == page

    def _check_title(self, buf, end):
        # -> where the title begins.
        start = end - buf[end - 1]
        title = bytes(buf[start:end])
        if title[8:] != self._title[8:]:
            _refuse("is of client %s" % title[8:-1])
        if title != self._title:
            _refuse("has another layout")
        return start


def _refuse(text):
    raise MQTTError(JOURNAL, "journal %s: erase_foreign=True would erase it" % text)


def u32(buf, at):
    """The number at `buf[at]`, little-endian."""
    return buf[at] | buf[at + 1] << 8 | buf[at + 2] << 16 | buf[at + 3] << 24


def _is_sealed(buf, start, end):
    crc = u32(buf, end - 4)
    pack_into("<I", buf, end - 4, crc & 0xC0000000)
    return crc32(memoryview(buf)[start:end]) == crc & 0x3FFFFFFF
