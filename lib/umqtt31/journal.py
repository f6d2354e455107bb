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
from .ring import Ring

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
        cell_bytes = min(cell_bytes, program_bytes)
        self._ring = Ring(block_device, program_bytes, cell_bytes, erase_bytes)
        self.is_deferred = group_commit
        self._erase_foreign = erase_foreign

    # --- opening and recovery ---------------------------------------------------

    def open(self, client_id, slots, slot_bytes, held_slots):
        """As RamStore; then read the log and, after a cut, finish reclaiming.

        Raises ValueError if the device is too small for these sizes; MQTTError
        (JOURNAL) if it holds another client's journal, or more than fits these
        sizes; nothing on flash has changed then.
        """
        self._set_capacity(client_id, slot_bytes, held_slots)
        self._slots = slots
        self._format = "%ds" % slot_bytes
        self._packet = bytearray(slot_bytes)
        none = [0] * (slots + held_slots)
        self._kind = bytearray(none)  # 0: free
        self._number = array("I", none)  # gives the order
        self._packet_id = array("H", none)
        self._length = array("H", none)
        self._page = array("H", none)  # in which its group begins
        self._offset = array("H", none)  # of the packet, from the start of that page
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
            number = buf[i + 1] | buf[i + 2] << 8 | buf[i + 3] << 16 | buf[i + 4] << 24
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
        # -> a free entry; recovery may need more for a time than there are to be.
        ...
