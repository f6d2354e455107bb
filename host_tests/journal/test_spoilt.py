"""Bits that turn on flash, which nobody is told: what is read back wrong is given up."""

import pytest

from host_tests.journal.steps import opened, put, recovered
from host_tests.standin.nor import Flash


def spoil(flash, packet):
    """Turn a bit in each copy of this packet."""
    at = flash.data.find(packet)
    assert at >= 0
    while at >= 0:
        flash.spoil(at + len(packet) - 1)
        at = flash.data.find(packet)


def behind(journal, packet_id, packet):
    """Put a message in that lies on flash alone."""
    assert journal.put(packet_id, 1, packet, False, 0)


def fetched(journal):
    """-> what comes from flash: packets, None for those that are lost."""
    messages = [journal.fetch() for _ in range(journal.behind)]
    return [message and message.packet for message in messages]


@pytest.mark.parametrize("size", [2, 63, 64, 65, 200, 256])
def test_packet_when_a_bit_of_it_turned_then_it_is_lost_and_no_other(size):
    flash = Flash(8)
    journal = opened(flash)
    packet = bytes(i * 7 + 1 & 255 for i in range(size))
    for packet_id, one in enumerate((b"before", packet, b"behind"), 1):
        behind(journal, packet_id, one)
    spoil(flash, packet)
    assert fetched(journal) == [b"before", None, b"behind"]


def test_lost_packet_says_which_it_was_and_is_done_when_it_is_given_up():
    flash = Flash(8)
    journal = opened(flash)
    for packet_id in (7, 8):
        behind(journal, packet_id, b"message %d" % packet_id)
    spoil(flash, b"message 7")
    ring = bytearray(300)
    assert journal.journal.fetch(ring, 0) > 5 and ring[0] == 0 and ring[4] == 7
    journal.journal.note(0x40, 7)
    journal.sync()
    assert [m[1] for m in recovered(opened(flash)).messages] == [8]


def test_every_bit_of_an_entry_when_it_turned_then_never_another_packet():
    flash = Flash(8)
    journal = opened(flash)
    packet = b"0\x0b\x00\x03t/121.5 C"
    behind(journal, 1, packet)
    at = flash.data.find(packet)
    for bit in range(len(packet) * 8):
        flash.spoil(at + bit // 8, 1 << bit % 8)
        again = opened(Flash(8, image=flash.data))
        assert recovered(again).messages == []  # the group's own check
        assert again.journal.corrupt_pages == 1
        flash.spoil(at + bit // 8, 1 << bit % 8)
    assert fetched(journal) == [packet]


def test_packet_that_turned_after_opening_is_lost_as_well():
    flash = Flash(8)
    put(opened(flash), 0, 1, b"the message")
    journal = opened(flash)
    spoil(flash, b"the message")
    assert fetched(journal) == [None]


def test_spoilt_packet_when_its_block_is_given_up_then_it_is_lost_and_no_other():
    flash = Flash(6)
    journal = opened(flash)
    behind(journal, 1, b"the one that is spoilt")
    behind(journal, 2, b"the one that is well")
    spoil(flash, b"the one that is spoilt")
    for packet_id in range(3, 300):
        journal.journal.note(0x30, packet_id)
        journal.commit()
        journal.journal.note(0x62, packet_id)
        journal.commit()
    assert flash.erases > 5
    assert fetched(journal) == [None, b"the one that is well"]
    assert [m[1] for m in recovered(opened(flash)).messages if m] == [2]


def test_read_that_is_wrong_once_is_repeated():
    flash = Flash(8)
    journal = opened(flash)
    behind(journal, 1, b"the message")
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
    found = recovered(opened(flash))
    assert [(entry[1], entry[5]) for entry in found.messages] == [(1, b"first"), (2, b"second")]
