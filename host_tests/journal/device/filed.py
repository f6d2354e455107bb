"""A journal in a file on a filesystem in RAM, for the programs beside it."""

import vfs

from host_tests.standin.ramflash import RamFlash
from umqtt31.fileblockdevice import FileBlockDevice
from umqtt31.journal import Journal


class Disk:
    """`blocks` of 512 bytes with an empty `filesystem`, mounted at /flash, and a journal on it."""

    def __init__(self, filesystem, blocks, journal_blocks=5, journal_block=512):
        self._filesystem = filesystem
        self._blocks = blocks
        self._journal = journal_blocks, journal_block
        self.flash = RamFlash(blocks, 512)
        filesystem.mkfs(self.flash)
        vfs.mount(filesystem(self.flash), "/flash")

    def open(self, folder="/flash", hold=None):
        """-> device, journal, and how many messages are in it."""
        device = FileBlockDevice(folder + "/journal.img", *self._journal)
        size = self._journal[1]
        journal = Journal(device, program_bytes=size // 8, erase_bytes=size, cell_bytes=32)
        return device, journal, journal.open(b"n", 3, 40, 6, hold, [0, 0, 0], 72)[0]

    def recovered(self, data):
        """What a reset finds on a flash with this data -> (packet id, did PUBREC come) of each
        message, and the received ids."""
        vfs.mount(self._filesystem(RamFlash(self._blocks, 512, data)), "/cut")
        held, messages, ring = [], [], bytearray(200)
        try:
            device, journal, count = self.open("/cut", held.append)
            for _ in range(count):
                journal.fetch(ring, 0)
                messages.append((ring[3] << 8 | ring[4], ring[0] & 0xF0 == 0x70))
            device.close()
        finally:
            vfs.umount("/cut")
        return messages, held
