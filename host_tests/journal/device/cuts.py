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

from host_tests.standin.ramflash import RamFlash
from umqtt31.fileblockdevice import FileBlockDevice
from umqtt31.journal import Journal

FILESYSTEM = vfs.VfsFat if sys.argv[1] == "fat" else vfs.VfsLfs2
# Of the flash, and of the journal in its file.
BLOCK, BLOCKS, JOURNAL_BLOCK, JOURNAL_BLOCKS = (
    (512, 160, 1024, 8) if sys.argv[1] == "fat" else (512, 48, 512, 5)
)
PUBACK, PUBREC, PUBLISH, PUBREL = 0x40, 0x50, 0x30, 0x62
ring = bytearray(200)


def opened(folder, held):
    device = FileBlockDevice(folder + "/journal.img", JOURNAL_BLOCKS, JOURNAL_BLOCK)
    journal = Journal(
        device, program_bytes=JOURNAL_BLOCK // 8, erase_bytes=JOURNAL_BLOCK, cell_bytes=32
    )
    said = journal.open(b"n", 3, 40, 6, held.append, [0, 0, 0], 72)
    return device, journal, said[0]


def recovered(data):
    vfs.mount(FILESYSTEM(RamFlash(BLOCKS, BLOCK, data)), "/cut")
    held = []
    try:
        device, journal, count = opened("/cut", held)
        state = []
        for _ in range(count):
            journal.fetch(ring, 0)
            state.append((ring[3] << 8 | ring[4]) * 2 + (ring[0] & 0xF0 == 0x70))
        device.close()
    finally:
        vfs.umount("/cut")
    return state + [-packet_id for packet_id in held]


class Cutter:
    """Cuts a copy of the flash before each operation goes on; counts what is wrong."""

    def __init__(self, flash):
        self.flash = flash
        self.torn = bytearray(len(flash.data))
        self.states = [[]]
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
            state = recovered(torn)
        except (OSError, ValueError) as error:
            state = error
        self.flash.hook = self.hook
        self.cuts += 1
        if state not in self.states[self.required :]:
            self.wrong += 1
            print("wrong", self.cuts, state, self.states[self.required :])


def main():
    flash = RamFlash(BLOCKS, BLOCK)
    FILESYSTEM.mkfs(flash)
    vfs.mount(FILESYSTEM(flash), "/flash")
    try:
        _, journal, _ = opened("/flash", [])
    except (ValueError, OSError) as error:
        print("refused:", error)
        return
    cutter = Cutter(flash)
    flash.hook = cutter.hook
    mine = bytearray(200)
    state = []

    def do(name, *args):
        # What the call will lead to, already in `state`, is allowed as it begins.
        cutter.states.append(list(state))
        getattr(journal, name)(*args)
        journal.tidy()
        cutter.required = len(cutter.states) - 1

    for k in range(1, 41):
        if k > 4:
            packet_id = (k - 4) * 2
            state.remove(packet_id + (k % 2))
            journal.note(PUBACK, k - 4)
            cutter.states.append(list(state))
        state.append(k * 2)
        mine[:6] = bytes((0x50, 0, 30, 0, k, k))
        do("put", mine, 0, 35, False, False)
        if k % 2:
            state[-1] += 1
            do("note", PUBREC, k)
        state.append(-k)
        do("note", PUBLISH, k)
        state.pop()
        do("note", PUBREL, k)
    print(cutter.cuts, "cuts", cutter.wrong, "wrong")


main()
