"""Runs under MicroPython: every call of the journal, heap locked, over a RAM flash.

Prints the number of blocks erased under the lock and what a new life recovers.
"""

import sys

import micropython

from host_tests.standin.ramflash import RamFlash
from umqtt31.journal import Journal


class Found:
    def __init__(self):
        self.messages = []
        self.held = []

    def restore(self, *message):
        self.messages.append(message)

    def restore_run(self, first, last):
        self.held.append((first, last))

    def restore_clean(self, is_clean):
        pass

    def restore_last_id(self, packet_id):
        self.last_id = packet_id


def use(journal, buf, first, count):
    for k in range(first, first + count):
        slot = k % 20
        if k >= 15:
            journal.remove((k - 15) % 20)
        buf[5] = k & 0xFF
        if not journal.put(slot, k % 65535 + 1, 1 + k % 2, buf, 60 + k % 180, k % 3 == 0):
            return False
        journal.online()
        if k % 2:
            journal.pubrec(slot)
            journal.commit()
            journal.hold(k)
            journal.commit()
            journal.release(k)
        journal.commit()
        if journal.get(slot, buf) != 60 + k % 180 or buf[5] != k & 0xFF:
            return False
    journal.sync()
    return True


def main(is_deferred):
    flash = RamFlash(8)
    buf = bytearray(b"0123456789" * 30)

    def opened():
        journal = Journal(flash, group_commit=is_deferred)
        journal.open(b"node-17", 20, 256, 4)
        return journal

    journal = opened()
    flash.erased = 0
    micropython.heap_lock()
    done = use(journal, buf, 1, 150)
    journal.clear()
    done = done and use(journal, buf, 200, 150)
    micropython.heap_unlock()
    found = Found()
    again = opened()
    again.recover(found)
    print(done, flash.erased > 16, len(found.messages), found.held, found.last_id)


main(sys.argv[1] == "deferred")
