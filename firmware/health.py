"""How the node itself is, as values of a reading on a stream of its own, and its fault.

Written at each start and once a day; docs/reference/readings.md has the kinds.  Allocates.
"""

import gc

from reading import FREE_HEAP, SIGNAL
from state import DONE

FAULT = "journal: stopped, messages wait in RAM"
_FAILED = "failed"

STREAM = 255
EVERY_S = 86400

CAUSE = 16  # 1 power, 2 reset, 3 watchdog, 4 deep sleep, 5 soft reset, 0 unknown
LARGEST_BLOCK = 17  # bytes
RECONNECTS = 18
DROPS = 19  # messages given up and readings refused
FILL = 20  # 0.01 % of the room for messages in use
CORRUPT_PAGES = 21
BAD_BLOCKS = 22
JOURNAL_FAILED = 23  # 1: messages wait in RAM
FORGED = 24  # commands refused for their signature


class Health:
    """`cause` is why the board started, `room` how many messages the client takes, `store`
    its store; `slept` what the node handed over to itself before a deep sleep, or {}.

    `number` counts the reports of this boot; the next is due at the uptime `next_s`.
    """

    def __init__(self, cause, room, store, slept):
        self._cause = cause
        self._room = room
        self._store = store
        self.number = slept.get("health_number", 0)
        self.next_s = slept.get("next_health_s", 0)

    def measure(self, reading, client, network, refused, forged):
        gc.collect()
        reading.clear()
        reading.add(CAUSE, self._cause)
        if hasattr(gc, "mem_free"):
            free = gc.mem_free()
            reading.add(FREE_HEAP, free)
            reading.add(LARGEST_BLOCK, largest_block(free, free >> 6))
        reading.add(RECONNECTS, client.stats.reconnects)
        reading.add(DROPS, client.stats.dropped + refused)
        reading.add(FILL, 10000 * (client.inflight + client.queued) // self._room)
        reading.add(CORRUPT_PAGES, getattr(self._store, "corrupt_pages", 0))
        # A store in RAM has no bad_blocks(); int() is 0.
        bad_blocks = getattr(self._store, "bad_blocks", int)()
        if getattr(self._store, "has_failed", False):
            reading.add(JOURNAL_FAILED, 1)
        elif bad_blocks:
            reading.add(BAD_BLOCKS, bad_blocks)
        if forged:
            reading.add(FORGED, min(forged, 0x7FFFFFFF))
        rssi = network.rssi()  # last, as the reading may be full
        if rssi is not None:
            reading.add(SIGNAL, rssi)

    def sent(self, uptime_s):
        """It went out: the next one in a day."""
        self.number += 1
        self.next_s = uptime_s + EVERY_S

    def fall_asleep(self, asleep):
        """Add to the dict what the next start needs."""
        asleep["health_number"] = self.number
        asleep["next_health_s"] = self.next_s


class Fault:
    """What of the device has failed for good: the journal, so far.

    It is said by a retained message, and kept over resets: all that the journal held may have
    gone out, and the journal itself cannot say so any more.  `store` is the client's, a
    fallback.Fallback or one that cannot fail; `state` a state.State.  `is_told`: on this
    connection; who opens one sets it to False.
    """

    def __init__(self, store, state):
        self._store = store
        self._state = state
        self._is_known = False
        self.is_told = False

    @property
    def has_failed(self):
        """Has the journal?"""
        return getattr(self._store, "has_failed", False)

    def look(self, undelivered):
        """See how the journal is; so many messages have not arrived -> has it failed since
        the last look?"""
        if not self.has_failed:
            return False
        known = self._state.journal
        if known != DONE:
            journal = _FAILED if undelivered > self.volatile else DONE
            if journal != known:
                self._state.keep_journal(journal)
        is_new = not self._is_known
        self._is_known = True
        return is_new

    @property
    def text(self):
        """What the retained message is to be; None: as it is."""
        if self.is_told:
            return None
        if self.has_failed:
            return FAULT
        return "" if self._state.journal else None

    def told(self):
        """It was published."""
        self.is_told = True
        if self._state.journal and not self.has_failed:
            self._state.keep_journal(None)

    @property
    def volatile(self):
        """How many messages a sleep would forget, though there is a journal."""
        return self._store.in_ram if self.has_failed else 0


def largest_block(free, within):
    """The longest run among `free` bytes, to `within` bytes.

    Found by trying: MicroPython has no better way.
    """
    low, high = 0, free
    while high - low > max(16, within):
        middle = (low + high) // 2
        try:
            bytearray(middle)
            low = middle
        except MemoryError:
            high = middle
        gc.collect()
    return low
