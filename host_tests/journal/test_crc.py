"""The CRC of a group where a large number would take memory, played under CPython.

32-bit boards keep numbers of 30 bits without allocating, and the heap may be locked.
"""

import binascii

import umqtt31.journal
from host_tests.journal.steps import opened

LARGE = []  # CRCs that could not be had


def crc_without_big_numbers(data):
    crc = binascii.crc32(data)
    if crc >= 1 << 30:
        LARGE.append(crc)
        raise MemoryError
    return crc


def test_journal_when_large_numbers_cannot_be_had_then_writes_the_same(monkeypatch):
    """And is read on a computer, where they can: groups in different places of their pages."""
    journals = [opened(8), opened(8)]
    for journal in journals:
        for number in range(60):
            packet = bytes((number * 37 + i) & 255 for i in range(40 + number))
            assert journal.put(number + 1, packet=packet)
            if number >= 4:
                journal.remove(number - 3)
        journal.sync()
        monkeypatch.setattr(umqtt31.journal, "crc32", crc_without_big_numbers)
    assert len(LARGE) > 50  # three of four CRCs are large
    assert journals[0].flash.data == journals[1].flash.data
    monkeypatch.undo()
    after = opened(journals[1].flash)
    assert (after.state().ids, after.journal.corrupt_pages) == ([57, 58, 59, 60], 0)
