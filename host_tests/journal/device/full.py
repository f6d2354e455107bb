"""Runs under MicroPython: a journal in a file on littlefs, which another file fills for a while.

Prints the ids that were refused meanwhile, and those that a reset finds, in the end.
"""

import os

import vfs
from filed import Disk


def main():
    disk = Disk(vfs.VfsLfs2, 64)
    _, journal, _ = disk.open()
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
    messages, _ = disk.recovered(bytearray(disk.flash.data))
    print(refused, [packet_id for packet_id, _ in messages])


main()
