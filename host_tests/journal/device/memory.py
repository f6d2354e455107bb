"""Runs under MicroPython: heap that a journal keeps, and that its opening takes more.

The device collects garbage before each read and notes what is in use.  Prints the bytes kept
without and with 300 messages that wait, and what was used more while they were opened.
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


def opened(flash, most):
    journal = Journal(flash)
    said = journal.open(b"node-17", 3, 256, most, print, [0] * 108, 1551)
    return journal, said


def main():
    flash = Watched(16)
    ring = bytearray(600)
    ring[0] = 0x40
    ring[2] = 50
    opened(flash, 20)  # with all that is loaded for it
    kept = []
    more = []
    for count in (0, 300):
        journal, _ = opened(flash, 320)
        for k in range(count):
            ring[3] = k + 1 >> 8
            ring[4] = k + 1 & 255
            journal.put(ring, 0, 55, False, True)
        journal = None
        flash.most = 0
        gc.collect()
        before = gc.mem_alloc()
        journal, said = opened(flash, 320)
        gc.collect()
        kept.append(gc.mem_alloc() - before)
        more.append(flash.most - before - kept[-1])
    print(kept[0], kept[1], more[0], more[1], said[0])


main()
