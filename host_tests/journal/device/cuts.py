"""Runs under MicroPython: a journal in a file on littlefs or FAT, cut at the flash's operations.

At each, or each so-manieth, program and erase of the flash below the filesystem a copy of that
flash is cut and mounted, and the journal on it is recovered.  FAT writes a sector by erasing and
programming it, so a cut between the two leaves nothing of what was there.  Prints "refused" and
the reason, or how many cuts there were, and how often the state was not one between the newest
durable one and the current one.

Usage: micropython cuts.py fat|littlefs FIRST STEP.
"""

import sys

import vfs
from filed import Disk

PUBACK, PUBREC, PUBLISH, PUBREL = 0x40, 0x50, 0x30, 0x62


class Cutter:
    """Cuts a copy of the flash before each operation goes on; counts what is wrong."""

    def __init__(self, disk):
        self.disk = disk
        self.flash = disk.flash
        self.torn = bytearray(len(self.flash.data))
        self.states = [([], [])]
        self.required = 0
        self.operations, self.step = int(sys.argv[2]), int(sys.argv[3])
        self.cuts = self.wrong = 0

    def hook(self, at, after):
        self.operations += 1
        if self.operations % self.step:
            return
        k = self.operations // self.step
        n = (0, len(after), len(after) // 2, k % len(after))[k % 4]
        torn = self.torn
        torn[:] = self.flash.data
        torn[at : at + n] = after[:n]
        self.flash.hook = None
        try:
            state = self.disk.recovered(torn)
        except (OSError, ValueError) as error:
            state = error
        self.flash.hook = self.hook
        self.cuts += 1
        if state not in self.states[self.required :]:
            self.wrong += 1
            print("wrong", self.cuts, state, self.states[self.required :])


def main():
    # littlefs, or FAT, which needs more blocks than the journal's file has.
    disk = Disk(vfs.VfsFat, 160, 8, 1024) if sys.argv[1] == "fat" else Disk(vfs.VfsLfs2, 48)
    try:
        _, journal, _ = disk.open()
    except (ValueError, OSError) as error:
        print("refused:", error)
        return
    cutter = Cutter(disk)
    disk.flash.hook = cutter.hook
    mine = bytearray(200)
    messages = []
    held = []

    def allow():
        cutter.states.append((list(messages), list(held)))

    def do(name, *args):
        # What the call will lead to, already in the lists, is allowed as it begins.
        allow()
        getattr(journal, name)(*args)
        journal.tidy()
        cutter.required = len(cutter.states) - 1

    for k in range(1, 41):
        if k > 4:
            messages.remove((k - 4, k % 2 == 1))
            journal.note(PUBACK, k - 4)
            allow()
        messages.append((k, False))
        mine[:6] = bytes((0x50, 0, 30, 0, k, k))
        do("put", mine, 0, 35, False, False)
        if k % 2:
            messages[-1] = k, True
            do("note", PUBREC, k)
        held.append(k)
        do("note", PUBLISH, k)
        held.pop()
        do("note", PUBREL, k)
    print(cutter.cuts, "cuts", cutter.wrong, "wrong")


main()
