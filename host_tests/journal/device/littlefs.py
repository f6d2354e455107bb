"""Runs under MicroPython: a journal in a file on littlefs, cut at littlefs' operations.

At every program and erase of the flash below littlefs a copy of that flash is cut,
mounted, and its journal recovered.  Prints how many, and how often the state
was not one between the newest durable one and the current one.
"""

import vfs

from host_tests.standin.ramflash import RamFlash
from umqtt31.fileblockdevice import FileBlockDevice
from umqtt31.journal import Journal

BLOCK = 512
BLOCKS = 48


class Found:
    def __init__(self):
        self.state = []

    def restore(self, slot, packet_id, qos, has_pubrec, maybe_sent):
        self.state.append(packet_id * 2 + has_pubrec)

    def restore_run(self, first, last):
        self.state += [-packet_id for packet_id in range(first, last + 1)]

    def restore_clean(self, is_clean):
        pass

    def restore_last_id(self, packet_id):
        pass


def opened(folder):
    device = FileBlockDevice(folder + "/journal.img", 5, BLOCK)
    journal = Journal(device, program_bytes=64, erase_bytes=BLOCK, cell_bytes=32)
    journal.open(b"n", 6, 40, 2)
    return device, journal


def recovered(data):
    vfs.mount(vfs.VfsLfs2(RamFlash(BLOCKS, BLOCK, data)), "/cut")
    device, journal = opened("/cut")
    found = Found()
    journal.recover(found)
    device.close()
    vfs.umount("/cut")
    return found.state


class Cutter:
    """Cuts a copy of the flash before each operation goes on; counts what is wrong."""

    def __init__(self, flash):
        self.flash = flash
        self.torn = bytearray(len(flash.data))
        self.states = [[]]
        self.required = 0
        self.cuts = self.wrong = 0

    def hook(self, at, after):
        n = (0, len(after), len(after) // 2, self.cuts % len(after))[self.cuts % 4]
        torn = self.torn
        torn[:] = self.flash.data
        torn[at : at + n] = after[:n]
        self.flash.hook = None
        state = recovered(torn)
        self.flash.hook = self.hook
        self.cuts += 1
        if state not in self.states[self.required :]:
            self.wrong += 1
            print("wrong", self.cuts, state, self.states[self.required :])


def main():
    flash = RamFlash(BLOCKS, BLOCK)
    vfs.VfsLfs2.mkfs(flash)
    vfs.mount(vfs.VfsLfs2(flash), "/flash")
    _, journal = opened("/flash")
    cutter = Cutter(flash)
    flash.hook = cutter.hook
    buf = bytearray(b"packet" * 10)
    state = []

    def do(name, *args):
        # What the call will lead to, already in `state`, is allowed as it begins.
        cutter.states.append(list(state))
        getattr(journal, name)(*args)
        journal.commit()
        cutter.required = len(cutter.states) - 1

    for k in range(1, 41):
        if k > 4:
            packet_id = (k - 4) * 2
            state.remove(packet_id + (k % 2))
            journal.remove((k - 4) % 6)
            cutter.states.append(list(state))
        state.append(k * 2)
        do("put", k % 6, k, 2, buf, 30, False)
        if k % 2:
            state[-1] += 1
            do("pubrec", k % 6)
        state.append(-k)
        do("hold", k)
        state.pop()
        do("release", k)
    print(cutter.cuts, "cuts", cutter.wrong, "wrong")


main()
