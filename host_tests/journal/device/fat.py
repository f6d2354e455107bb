"""Runs under MicroPython: a journal in a file on FAT, cut at the flash's operations.

FAT writes a sector by erasing and programming it, so a cut between the two leaves
nothing of what was there.  Prints "refused" and the reason, or how many cuts there
were and after how many of them an accepted message was missing.
"""

import vfs

from host_tests.client.dialogue import Dialogue
from host_tests.standin.ramflash import RamFlash
from umqtt31 import FileBlockDevice, Journal

SECTOR = 512
SECTORS = 160
MESSAGES = 24


def client_on(folder, is_connected):
    device = FileBlockDevice(folder + "/journal.img", 8, 1024)
    journal = Journal(device, program_bytes=128, erase_bytes=1024)
    options = {"max_inflight": 60, "max_mqueue_len": 60, "buffer_size": 64}
    return Dialogue(is_connected=is_connected, store=journal, **options), device


def recovered(data):
    vfs.mount(vfs.VfsFat(RamFlash(SECTORS, SECTOR, data)), "/cut")
    try:
        d, device = client_on("/cut", True)
        payloads = [one[0] for one in d.take_publishes()]
        device.close()
    finally:
        vfs.umount("/cut")
    return payloads


class Cutter:
    def __init__(self, flash):
        self.flash = flash
        self.accepted = []
        self.cuts = self.wrong = 0

    def hook(self, at, after):
        n = (0, SECTOR, SECTOR // 2, self.cuts % SECTOR)[self.cuts % 4]
        torn = bytearray(self.flash.data)
        torn[at : at + n] = after[:n]
        self.flash.hook = None
        try:
            payloads = recovered(torn)
        except (OSError, ValueError) as error:
            payloads = error
        self.flash.hook = self.hook
        self.cuts += 1
        # The message that is just being accepted may be there or not.
        count = len(self.accepted)
        if isinstance(payloads, Exception) or payloads[:count] != self.accepted:
            self.wrong += 1


def main():
    flash = RamFlash(SECTORS, SECTOR)
    vfs.VfsFat.mkfs(flash)
    vfs.mount(vfs.VfsFat(flash), "/flash")
    try:
        d, _ = client_on("/flash", False)
    except (ValueError, OSError) as error:
        print("refused:", error)
        return
    cutter = Cutter(flash)
    flash.hook = cutter.hook
    for k in range(MESSAGES):
        payload = b"message %d" % k
        d.publish(payload)
        cutter.accepted.append(payload)
    print(cutter.cuts, "cuts", cutter.wrong, "wrong")


main()
