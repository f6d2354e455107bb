"""Tests of the tests: journals with one thing broken, which the checker has to catch."""

from dataclasses import replace

import pytest

from host_tests.powercut.checker import Broken, Checker
from host_tests.powercut.scenarios import scenarios
from host_tests.standin.nor import Flash, WrongUse
from umqtt31 import opening
from umqtt31.journal import Journal


class WithoutPubrecBarrier(Journal):
    """PUBREL may overtake the record that PUBREC came."""

    def pubrec(self, slot):
        is_due = self._is_due
        super().pubrec(slot)
        self._is_due = is_due


class WithoutCommitOfMessages(Journal):
    """publish() returns before the message is on flash."""

    def put(self, *args):
        self.is_deferred, kept = True, self.is_deferred
        try:
            return super().put(*args)
        finally:
            self.is_deferred = kept


class ErasesBeforeCopying(Journal):
    """The oldest block is erased while its entries are in RAM only."""

    def _reclaim(self):
        place = self._ring.oldest % self._ring.blocks
        flash = self._ring.device
        image = bytes(flash.data)
        self._ring.erase(place)
        read = self._ring.read
        packet = self._ring.packet
        self._ring.read = lambda at: packet.__setitem__(slice(None), image[at : at + len(packet)])
        try:
            super()._reclaim()
        finally:
            self._ring.read = read


class ForgetsFlagsWhenCopying(Journal):
    """A copy says that neither PUBREC came nor a connection opened."""

    def _append(self, entry, buf):
        kind = self._kind[entry]
        if self._is_reclaiming:
            self._kind[entry] = kind & ~0x18
        super()._append(entry, buf)
        self._kind[entry] = kind


BROKEN = [
    WithoutPubrecBarrier,
    WithoutCommitOfMessages,
    ErasesBeforeCopying,
    ForgetsFlagsWhenCopying,
]


def check_all(journal):
    for scenario in scenarios():
        setting = replace(scenario.setting, journal=journal)
        Checker(torn=2).run(replace(scenario, setting=setting))


@pytest.mark.parametrize("journal", BROKEN, ids=lambda journal: journal.__name__)
def test_checker_catches_a_broken_journal(journal):
    with pytest.raises((Broken, WrongUse)):
        check_all(journal)


def test_checker_catches_a_journal_that_ignores_the_crc(monkeypatch):
    monkeypatch.setattr(opening._Log, "is_sealed", lambda log, at, n: True)
    with pytest.raises((Broken, WrongUse)):
        check_all(Journal)


def test_flash_model_refuses_to_turn_a_0_into_a_1():
    flash = Flash(1, 4096, 256)
    flash.writeblocks(0, bytes(256), 0)
    with pytest.raises(WrongUse):
        flash.writeblocks(0, b"\xff" * 256, 0)
