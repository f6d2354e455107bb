"""Runs under MicroPython: a journal in a file on littlefs, which another file fills for a while.

Prints the ids that were refused meanwhile, and those that a reset finds, in the end.
"""

import os

import vfs

from host_tests.standin.ramflash import RamFlash
from umqtt31.fileblockdevice import FileBlockDevice
from umqtt31.journal import Journal

BLOCKS = 64
ring = bytearray(200)


def opened(folder):
    journal = Journal(
        FileBlockDevice(folder + "/journal.img", 5, 512),
        program_bytes=64,
        erase_bytes=512,
        cell_bytes=32,
    )
    return journal, journal.open(b"n", 3, 40, 6, None, [0, 0, 0], 72)[0]


def found(data):
    vfs.mount(vfs.VfsLfs2(RamFlash(BLOCKS, 512, bytearray(data))), "/reset")
    journal, count = opened("/reset")
    ids = []
    for _ in range(count):
        journal.fetch(ring, 0)
        ids.append(ring[4])
    return ids


def main():
    flash = RamFlash(BLOCKS, 512)
    vfs.VfsLfs2.mkfs(flash)
    vfs.mount(vfs.VfsLfs2(flash), "/flash")
    journal, _ = opened("/flash")
    refused = []

    def put(packet_id):
        entry = bytes((0x40, 0, 30, 0, packet_id)) + bytes(30)
        try:
            assert journal.put(entry, 0, 35, False, False)
        except OSError:
            refused.append(packet_id)

    put(1)
    try:
        with open("/flash/other", "wb") as other:
            while True:
                other.write(bytes(64))
                other.flush()
    except OSError:
        pass
    put(2)
    put(3)
    os.remove("/flash/other")
    put(4)
    print(refused, found(flash.data))


main()
