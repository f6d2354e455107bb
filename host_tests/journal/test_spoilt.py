"""Bits that turn on flash, which nobody is told: what is read back wrong is given up."""

import pytest

from host_tests.journal.steps import found, opened, put
from host_tests.standin.nor import Flash


def spoil(flash, packet):
    """Turn a bit in each copy of this packet."""
    at = flash.data.find(packet)
    assert at >= 0
    while at >= 0:
        flash.spoil(at + len(packet) - 1)
        at = flash.data.find(packet)


def behind(*packets):
    """-> a journal with these messages, with ids from 1 on, which lie on flash alone."""
    journal = opened(8)
    for packet_id, packet in enumerate(packets, 1):
        assert journal.put(packet_id, 1, packet, False, 0)
    return journal


def fetched(journal):
    """-> what comes from flash: packets, None for those that are lost."""
    messages = [journal.fetch() for _ in range(journal.behind)]
    return [message and message.packet for message in messages]


@pytest.mark.parametrize("size", [2, 63, 64, 65, 200, 256])
def test_packet_when_a_bit_of_it_turned_then_it_is_lost_and_no_other(size):
    packet = bytes(i * 7 + 1 & 255 for i in range(size))
    journal = behind(b"before", packet, b"behind")
    spoil(journal.flash, packet)
    assert fetched(journal) == [b"before", None, b"behind"]


def test_lost_packet_says_which_it_was_and_is_done_when_it_is_given_up():
    journal = behind(b"message 1", b"message 2")
    spoil(journal.flash, b"message 1")
    ring = bytearray(300)
    assert journal.journal.fetch(ring, 0) > 5 and ring[0] == 0 and ring[4] == 1
    journal.journal.note(0x40, 1)
    journal.sync()
    assert found(journal).ids == [2]


def test_every_bit_of_an_entry_when_it_turned_then_never_another_packet():
    packet = b"0\x0b\x00\x03t/121.5 C"
    journal = behind(packet)
    at = journal.flash.data.find(packet)
    for bit in range(len(packet) * 8):
        journal.flash.spoil(at + bit // 8, 1 << bit % 8)
        after = found(Flash(8, image=journal.flash.data))
        assert (after.messages, after.corrupt_pages) == ([], 1)  # the group's own check
        journal.flash.spoil(at + bit // 8, 1 << bit % 8)
    assert fetched(journal) == [packet]


def test_packet_that_turned_after_opening_is_lost_as_well():
    journal = opened(behind(b"the message").flash)
    spoil(journal.flash, b"the message")
    assert fetched(journal) == [None]


def test_spoilt_packet_when_its_block_is_given_up_then_it_is_lost_and_no_other():
    journal = behind(b"the one that is spoilt", b"the one that is well")
    spoil(journal.flash, b"the one that is spoilt")
    for packet_id in range(3, 400):
        journal.journal.note(0x30, packet_id)
        journal.commit()
        journal.journal.note(0x62, packet_id)
        journal.commit()
    assert journal.flash.erases > 5
    assert fetched(journal) == [None, b"the one that is well"]
    assert [packet_id for packet_id in found(journal).ids if packet_id] == [2]


def test_read_that_is_wrong_once_is_repeated():
    journal = behind(b"the message")
    flash = journal.flash
    at = flash.data.find(b"the message")
    read_blocks = flash.readblocks

    def read_wrong_once(block, buf, offset=0):
        is_whole = len(buf) > 20
        if is_whole:
            flash.readblocks = read_blocks
            flash.spoil(at)
        read_blocks(block, buf, offset)
        if is_whole:
            flash.spoil(at)

    flash.readblocks = read_wrong_once
    assert fetched(journal) == [b"the message"]


def test_page_that_keeps_a_wrong_bit_then_the_next_one_takes_the_message():
    journal = opened(8)
    flash = journal.flash
    put(journal, 0, 1, b"first")
    write_blocks = flash.writeblocks

    def write_wrong_once(block, buf, offset=None):
        flash.writeblocks = write_blocks
        write_blocks(block, buf, offset)
        flash.spoil(block * flash.block_bytes + offset + 140, 0x01)

    flash.writeblocks = write_wrong_once
    assert put(journal, 1, 2, b"second")
    assert [(m[1], m[5]) for m in found(flash).messages] == [(1, b"first"), (2, b"second")]
