"""Journals whose numbers take another byte; two on one flash, beside each other and, by mistake,
over each other."""

import pytest

from host_tests.journal.steps import found, journal_error, opened, turn
from host_tests.powercut.life import Life, Setting
from host_tests.powercut.scenarios import walk
from host_tests.standin.nor import Flash


class Area:
    """`count` of a flash's blocks, from `first` on; read over their ends, as flash is."""

    def __init__(self, whole, first, count):
        self.whole, self.first, self.count = whole, first, count

    def readblocks(self, block, buf, offset=0):
        block_bytes = self.whole.block_bytes
        left = memoryview(buf)
        while left:
            n = min(len(left), block_bytes - offset)
            self.whole.readblocks(self._own(block), left[:n], offset)
            left, block, offset = left[n:], block + 1, 0

    def writeblocks(self, block, buf, offset=0):
        assert offset + len(buf) <= self.whole.block_bytes
        self.whole.writeblocks(self._own(block), buf, offset)

    def ioctl(self, op, arg):
        if op == 4:
            return self.count
        return self.whole.ioctl(op, self._own(arg) if op == 6 else arg)

    def _own(self, block):
        assert 0 <= block < self.count
        return self.first + block


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
    for k, call in enumerate(walk(1, Setting(), 400)):
        life.do(*call)
        if k % 19 == 18:
            life.do("sync")
            state = life.state
            life = Life(setting, flash)
            assert life.state == state
    assert life.journal._newest * 4 > high


@pytest.mark.parametrize(
    ("device_bytes", "block_bytes", "slot_bytes"),
    [
        (512, 1024, 100),
        (512, 4096, 256),
        (2048, 2048, 256),
        (4096, 4096, 256),
        (4096, 65536, 256),
        (65536, 65536, 256),
    ],
)
def test_two_journals_beside_each_other_keep_what_is_theirs(device_bytes, block_bytes, slot_bytes):
    """Whatever the flash's blocks are; both are opened anew in between."""
    count = 6 * block_bytes // device_bytes
    flash = Flash(2 * count, device_bytes, 256)
    areas = [Area(flash, 0, count), Area(flash, count, count)]
    settings = [
        Setting(6, block_bytes, 256, 64, slots=5, slot_bytes=slot_bytes, client_id=name)
        for name in (b"first", b"second")
    ]
    lives = [Life(setting, area) for setting, area in zip(settings, areas, strict=True)]
    walks = [walk(seed, setting, 1200) for seed, setting in enumerate(settings)]
    for number, calls in enumerate(zip(*walks, strict=False)):
        for life, call in zip(lives, calls, strict=True):
            life.do(*call)
        if number % 400 == 399:
            for life in lives:
                life.do("sync")
            states = [life.state for life in lives]
            assert [Life(*one).state for one in zip(settings, areas, strict=True)] == states
    assert flash.erases


@pytest.mark.parametrize("name", [b"node-17", b"other"])
def test_journals_that_overlap_are_refused_once_the_other_one_has_written_there(name):
    """Before, nobody can know: what lies there is blank."""
    flash = Flash(24)
    first = opened(Area(flash, 0, 16))
    page = b"x" * 200  # so long that it takes one
    turn(first, 40, kept=200, packet=page)
    assert found(opened(Area(flash, 8, 16), name), client_id=name).messages == ()
    turn(first, 110, first=41, kept=200, packet=page)
    with journal_error("began at another place|is of client"):
        opened(Area(flash, 8, 16), name)
