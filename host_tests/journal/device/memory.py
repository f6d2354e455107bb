"""Runs under MicroPython: heap that a journal keeps, and that its recovery takes more.

The device collects garbage before each read and notes what is in use.
"""

import gc

from host_tests.standin.ramflash import RamFlash
from umqtt31.journal import Journal


class Watched(RamFlash):
    most = 0

    def readblocks(self, block, buf, offset=0):
        gc.collect()
        self.most = max(self.most, gc.mem_alloc())
        super().readblocks(block, buf, offset)


def opened(flash, slots):
    journal = Journal(flash)
    journal.open(b"node-17", slots, 256, 4)
    return journal


def main():
    flash = Watched(16)
    journal = opened(flash, 20)
    buf = bytearray(256)
    for k in range(600):
        if k >= 20:
            journal.remove(k % 20)
        journal.put(k % 20, k + 1, 2, buf, 100, True)
    journal = None
    kept = []
    for slots in (20, 120):
        gc.collect()
        before = gc.mem_alloc()
        journal = opened(flash, slots)
        gc.collect()
        kept.append(gc.mem_alloc() - before)
        if slots == 20:
            recovery = flash.most - before - kept[0]
        journal = None
    print(kept[0], recovery, (kept[1] - kept[0]) // 100)


main()
