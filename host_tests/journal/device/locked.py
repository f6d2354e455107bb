"""Runs under MicroPython: every call of the journal, heap locked, over a RAM flash.

Prints whether all calls worked, whether many blocks were erased under the lock, and what a
new life recovers.
"""

import sys

import micropython
from host_tests.standin.ramflash import FixedFlash
from umqtt31.journal import Journal

PUBACK, PUBREC, CONNACK, PUBLISH, PUBREL = 0x40, 0x50, 0x20, 0x30, 0x62


class Core:
    """The core's part: a ring with one entry, and received ids."""

    def __init__(self, flash, is_deferred):
        self.ring = bytearray(600)
        self.held = [0, 0, 0]
        self.holds = []
        self.journal = Journal(flash, group_commit=is_deferred)
        self.said = self.journal.open(
            b"node-17", 3, 256, 20, self.holds.append, self.held, 12 * 20
        )

    def write(self, packet_id, qos, n):
        ring = self.ring
        ring[0] = 0x30 + (qos << 4)
        ring[1] = n >> 8
        ring[2] = n & 255
        ring[3] = packet_id >> 8
        ring[4] = packet_id & 255
        for i in range(n):
            ring[5 + i] = packet_id + i & 255

    def is_fetched(self, packet_id):
        n = self.journal.fetch(self.ring, 0) - 5
        ring = self.ring
        if ring[0] & 0x40 == 0 or ring[3] << 8 | ring[4] != packet_id:
            return False
        for i in range(n):
            if ring[5 + i] != packet_id + i & 255:
                return False
        return True


def use(core, first, count):
    journal = core.journal
    for k in range(first, first + count):
        n = 60 + k % 180
        core.write(k, 1 + k % 2, n)
        # Each sixth message finds no room in the ring.
        if not journal.put(core.ring, 0, n + 5, k % 3 == 0, k % 6 == 0):
            return False
        if k % 6 == 0:
            journal.commit()
            if not core.is_fetched(k):
                return False
        journal.note(CONNACK, 0)
        if k % 2:
            journal.note(PUBREC, k)
            journal.commit()
            core.held[0] = k // 30
            core.held[1] = 1 << k % 30
            journal.note(PUBLISH, k)
            journal.commit()
            journal.note(PUBREL, k)
            core.held[1] = 0
        journal.commit()
        if k >= first + 12:
            journal.note(PUBACK, k - 12)
        if k % 4:
            journal.tidy()
    journal.sync()
    return True


def main(is_deferred):
    flash = FixedFlash(8)
    core = Core(flash, is_deferred)
    flash.erased = 0
    micropython.heap_lock()
    done = use(core, 1, 300)
    core.journal.renew(True)
    core.journal.tidy()
    micropython.heap_unlock()
    again = Core(flash, is_deferred)
    print(done, flash.erased > 16, again.said, again.holds)


main(sys.argv[1] == "deferred")
