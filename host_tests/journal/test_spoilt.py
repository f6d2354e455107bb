"""Bits that turn on flash, which nobody is told: what is read back wrong is given up."""

import pytest

from host_tests.journal.steps import opened, put, recovered
from host_tests.powercut.life import Collector
from host_tests.standin.nor import Flash


def spoil(flash, packet):
    """Turn a bit in each copy of this packet."""
    at = flash.data.find(packet)
    assert at >= 0
    while at >= 0:
        flash.spoil(at + len(packet) - 1)
        at = flash.data.find(packet)


def read(journal, slot):
    """-> the packet in a slot, None if it is lost."""
    buf = bytearray(256)
    n = journal.get(slot, buf)
    return bytes(buf[:n]) if n else None


@pytest.mark.parametrize("size", [2, 63, 64, 65, 200, 256])
def test_packet_when_a_bit_of_it_turned_then_it_is_lost_and_no_other(size):
    flash = Flash(8)
    journal = opened(flash)
    packet = bytes(i * 7 + 1 & 255 for i in range(size))
    put(journal, 0, 1, b"before")
    put(journal, 1, 2, packet)
    put(journal, 2, 3, b"behind")
    spoil(flash, packet)
    assert [read(journal, slot) for slot in range(3)] == [b"before", None, b"behind"]


def test_every_bit_of_an_entry_when_it_turned_then_never_another_packet():
    flash = Flash(8)
    journal = opened(flash)
    packet = b"0\x0b\x00\x03t/121.5 C"
    put(journal, 0, 1, packet)
    at = flash.data.find(packet)
    for bit in range(len(packet) * 8):
        flash.spoil(at + bit // 8, 1 << bit % 8)
        again = opened(Flash(8, image=flash.data))
        assert recovered(again).messages == []  # the group's own check
        assert again.corrupt_pages == 1
        flash.spoil(at + bit // 8, 1 << bit % 8)
    assert read(journal, 0) == packet
    flash.spoil(at)
    assert read(journal, 0) is None


def test_packet_that_turned_after_opening_is_lost_as_well():
    flash = Flash(8)
    put(opened(flash), 0, 1, b"the message")
    journal = opened(flash)
    journal.recover(Collector())
    assert read(journal, 0) == b"the message"
    spoil(flash, b"the message")
    assert read(journal, 0) is None


def test_spoilt_packet_when_its_block_is_given_up_then_its_copy_is_lost_too():
    flash = Flash(5)
    journal = opened(flash)
    put(journal, 0, 1, b"the one that is spoilt")
    put(journal, 1, 2, b"the one that is well")
    spoil(flash, b"the one that is spoilt")
    for packet_id in range(3, 120):
        put(journal, 2, packet_id, bytes(200))
        journal.remove(2)
    assert read(journal, 1) == b"the one that is well"
    assert read(journal, 0) is None
    again = opened(flash)
    found = recovered(again)
    slots = {entry[1]: entry[0] for entry in found.messages}
    assert read(again, slots[1]) is None  # told, not forgotten
    assert read(again, slots[2]) == b"the one that is well"


def test_spoilt_packet_when_removed_then_gives_back_its_room():
    flash = Flash(8)
    journal = opened(flash)
    large = bytes(range(256))
    used = journal._used
    put(journal, 0, 1, large)
    spoil(flash, large)
    assert read(journal, 0) is None
    journal.remove(0)
    assert journal._used == used


def test_read_that_is_wrong_once_is_repeated():
    flash = Flash(8)
    journal = opened(flash)
    put(journal, 0, 1, b"the message")
    at = flash.data.find(b"the message")
    read_blocks = flash.readblocks

    def read_wrong_once(block, buf, offset=0):
        flash.readblocks = read_blocks
        flash.spoil(at)
        read_blocks(block, buf, offset)
        flash.spoil(at)

    flash.readblocks = read_wrong_once
    assert read(journal, 0) == b"the message"


def test_page_that_keeps_a_wrong_bit_then_the_next_one_takes_the_message():
    flash = Flash(8)
    journal = opened(flash)
    put(journal, 0, 1, b"first")
    write_blocks = flash.writeblocks

    def write_wrong_once(block, buf, offset=None):
        flash.writeblocks = write_blocks
        write_blocks(block, buf, offset)
        flash.spoil(block * flash.block_bytes + offset + 140, 0x01)

    flash.writeblocks = write_wrong_once
    assert put(journal, 1, 2, b"second")
    found = opened(flash)
    assert [entry[1] for entry in recovered(found).messages] == [1, 2]
    assert [read(found, slot) for slot in (0, 1)] == [b"first", b"second"]
