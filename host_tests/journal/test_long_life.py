"""A journal whose numbers come near their end, and journals beside others."""

import pytest

from host_tests.journal.steps import opened, put, recovered
from host_tests.powercut.life import Life, Setting
from host_tests.powercut.scenarios import walk
from host_tests.standin.nor import Flash


def walked(life, setting, flash, calls, every):
    """Do `calls`, with a reset behind each `every` of them -> the last life."""
    for k, call in enumerate(calls):
        life.do(call)
        if k % every == every - 1:
            life.do(("sync",))
            state = life.model.state
            life = Life(setting, flash)
            assert life.state == state
    return life


@pytest.mark.parametrize("high", [1 << 8, 1 << 16, 1 << 24])
def test_page_numbers_when_they_take_another_byte_are_found_again(high):
    setting = Setting(blocks=6, slots=5, held_slots=7)
    flash = setting.flash()
    life = Life(setting, flash)
    journal = life.journal
    # The first place of the ring, as before, but of a turn that ends just beyond.
    block = (high // (setting.blocks * 4) - 1) * setting.blocks
    journal._oldest = journal._told = journal._listed = journal._cursor = block
    journal._newest = journal._good = block - 1
    journal._ready = block + 1
    life = walked(life, setting, flash, walk(1, Setting(), 400), 19)
    assert life.journal._newest * 4 > high


def test_two_journals_beside_each_other_never_touch_what_is_the_others():
    flash = Flash(16)

    class Half:
        def __init__(self, first):
            self.first = first

        def readblocks(self, block, buf, offset=0):
            assert 0 <= block * 4096 + offset <= 8 * 4096 - len(buf)
            flash.readblocks(self.first + block, buf, offset)

        def writeblocks(self, block, buf, offset=0):
            assert 0 <= block * 4096 + offset <= 8 * 4096 - len(buf)
            flash.writeblocks(self.first + block, buf, offset)

        def ioctl(self, op, arg):
            if op == 6:
                assert 0 <= arg < 8
                arg += self.first
            return 8 if op == 4 else flash.ioctl(op, arg)

    for life in range(4):
        halves = [opened(Half(first), client_id=b"node-%d" % first) for first in (0, 8)]
        for packet_id in range(1, 120):
            for journal in halves:
                journal.hold_id(packet_id % 3 + 1)
                assert put(journal, 60 + life, 500 * life + packet_id, b"%d" % packet_id * 20)
                journal.remove(60 + life)
        for journal, packet_id in zip(halves, (7, 9), strict=True):
            assert put(journal, life, 1000 * packet_id + life)
    for first, packet_id in ((0, 7), (8, 9)):
        found = recovered(opened(Half(first), client_id=b"node-%d" % first))
        assert [m[1] for m in found.messages] == [1000 * packet_id + life for life in range(4)]
        assert sorted(found.held) == [1, 2, 3]


@pytest.mark.parametrize("block_bytes", [1024, 2048, 4096, 65536])
@pytest.mark.parametrize("program_bytes", [64, 256])
def test_journal_on_blocks_of_any_size_goes_on_over_resets(block_bytes, program_bytes):
    setting = Setting(6, block_bytes, program_bytes, 64, slots=9, slot_bytes=100, held_slots=7)
    flash = setting.flash()
    packet_id = 0
    expected: list[int] = []
    for _ in range(8):
        life = Life(setting, flash)
        assert [m.packet_id for m in life.state.messages] == expected
        for _ in range(min(2 * block_bytes // program_bytes, 200)):
            packet_id += 1
            life.do(("put", packet_id, 1, b"%d" % packet_id, False))
            expected.append(packet_id)
            if len(expected) > 2:
                life.do(("remove", expected.pop(0)))
        life.do(("sync",))
        life.do(("check",))
