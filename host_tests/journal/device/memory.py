"""Runs under MicroPython: heap that a journal keeps, and that its recovery takes more.

The device collects garbage before each read and notes what is in use.
"""

import gc

from umqtt31.journal import Journal


class RamFlash:
    def __init__(self, blocks):
        self.blocks = blocks
        self.most = 0
        self.data = bytearray(b"\xff" * (blocks * 4096))

    def readblocks(self, block, buf, offset=0):
        gc.collect()
        self.most = max(self.most, gc.mem_alloc())
        at = block * 4096 + offset
        for i in range(len(buf)):
            buf[i] = self.data[at + i]

    def writeblocks(self, block, buf, offset=0):
        at = block * 4096 + offset
        for i in range(len(buf)):
            self.data[at + i] &= buf[i]

    def ioctl(self, op, arg):
        if op == 6:
            at = arg * 4096
            for i in range(at, at + 4096):
                self.data[i] = 0xFF
        return self.blocks if op == 4 else 4096


def opened(flash, slots):
    journal = Journal(flash)
    journal.open(b"node-17", slots, 256, 4)
    return journal


def main():
    flash = RamFlash(16)
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
