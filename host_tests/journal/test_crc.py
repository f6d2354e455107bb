"""The CRC of a group where a large number would take memory, played under CPython.

32-bit boards keep numbers of 30 bits without allocating, and the heap may be locked.
"""

import binascii

import pytest

import umqtt31.ring
from host_tests.powercut.life import Collector
from host_tests.standin.nor import Flash
from umqtt31 import MQTTError
from umqtt31.errors import JOURNAL
from umqtt31.journal import Journal


def opened(flash):
    journal = Journal(flash)
    journal.open(b"node-17", 20, 256, 4)
    return journal


def write_some(journal, count=60):
    """Groups in different places of their pages, with different bytes."""
    buf = bytearray(256)
    for number in range(count):
        buf[: 40 + number] = bytes((number * 37 + i) & 255 for i in range(40 + number))
        assert journal.put(number % 20, number + 1, 1, buf, 40 + number, False)
        if number >= 4:
            journal.remove((number - 4) % 20)
    journal.sync()


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

    monkeypatch.setattr(umqtt31.ring, "crc32", crc)
    flash = Flash(8, 4096, 256)
    write_some(opened(flash))
    assert len(failures) > 50  # three of four CRCs are large
    assert flash.data == reference.data


def test_journal_of_a_board_when_read_on_a_computer_then_all_is_there(monkeypatch):
    flash = Flash(8, 4096, 256)
    with monkeypatch.context() as board:
        board.setattr(umqtt31.ring, "crc32", crc_without_big_numbers)
        write_some(opened(flash))
    journal = opened(flash)
    found = Collector()
    journal.recover(found)
    assert [message[1] for message in found.messages] == [57, 58, 59, 60]
    assert journal.corrupt_pages == 0


def failing(*_):
    raise OSError(5)


def test_erase_when_device_fails_then_journal_error(monkeypatch):
    flash = Flash(4, 4096, 256)
    journal = opened(flash)
    ioctl = flash.ioctl
    monkeypatch.setattr(flash, "ioctl", lambda op, arg: failing() if op == 6 else ioctl(op, arg))
    with pytest.raises(MQTTError) as caught:
        write_some(journal)
    assert caught.value.code == JOURNAL
    monkeypatch.undo()
    buf = bytearray(b"after" + bytes(251))
    assert journal.put(19, 999, 1, buf, 5, False)
    found = Collector()
    again = opened(flash)
    again.recover(found)
    assert found.messages[-1][1] == 999
