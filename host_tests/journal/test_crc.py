"""The CRC of a group where a large number would take memory, played under CPython.

32-bit boards keep numbers of 30 bits without allocating, and the heap may be locked.
"""

import binascii

import pytest

import umqtt31.journal
from host_tests.journal.steps import opened, put, recovered
from host_tests.standin.nor import Flash
from umqtt31 import MQTTError
from umqtt31.errors import JOURNAL


def write_some(desk, count=60):
    """Groups in different places of their pages, with different bytes."""
    for number in range(count):
        packet = bytes((number * 37 + i) & 255 for i in range(40 + number))
        assert put(desk, number, number + 1, packet)
        if number >= 4:
            desk.remove(number - 4)
    desk.sync()


def crc_without_big_numbers(data):
    crc = binascii.crc32(data)
    if crc >= 1 << 30:
        raise MemoryError
    return crc


def test_journal_when_large_numbers_cannot_be_had_then_writes_the_same(monkeypatch):
    reference = Flash(8, 4096, 256)
    write_some(opened(reference))
    failures = []

    def crc(data):
        try:
            return crc_without_big_numbers(data)
        except MemoryError:
            failures.append(len(data))
            raise

    monkeypatch.setattr(umqtt31.journal, "crc32", crc)
    flash = Flash(8, 4096, 256)
    write_some(opened(flash))
    assert len(failures) > 50  # three of four CRCs are large
    assert flash.data == reference.data


def test_journal_of_a_board_when_read_on_a_computer_then_all_is_there(monkeypatch):
    flash = Flash(8, 4096, 256)
    with monkeypatch.context() as board:
        board.setattr(umqtt31.journal, "crc32", crc_without_big_numbers)
        write_some(opened(flash))
    desk = opened(flash)
    assert [message[1] for message in recovered(desk).messages] == [57, 58, 59, 60]
    assert desk.journal.corrupt_pages == 0


def failing(*_):
    raise OSError(5)


def test_erase_when_device_fails_then_journal_error(monkeypatch):
    flash = Flash(4, 4096, 256)
    journal = opened(flash, slots=20)
    ioctl = flash.ioctl
    monkeypatch.setattr(flash, "ioctl", lambda op, arg: failing() if op == 6 else ioctl(op, arg))
    with pytest.raises(MQTTError) as caught:
        write_some(journal, 140)  # more than the blocks that were blank take
    assert caught.value.code == JOURNAL
    monkeypatch.undo()
    for slot in list(journal.ids):
        journal.remove(slot)
    try:
        assert put(journal, 999, 999, b"after")
    except MQTTError:  # from now on they are tried again
        assert put(journal, 999, 999, b"after")
    assert recovered(opened(flash)).messages[-1][1] == 999
