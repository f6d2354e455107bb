"""Tests of the tests: journals with one thing broken, which the checker has to catch."""

from dataclasses import replace
from struct import error as struct_error
from struct import unpack_from

import pytest

from host_tests.powercut.checker import Broken, Checker
from host_tests.powercut.scenarios import scenarios
from host_tests.standin.nor import Flash, WrongUse
from umqtt31 import opening
from umqtt31.journal import Journal


class WithoutPubrecBarrier(Journal):
    """PUBREL may overtake the record that PUBREC came."""

    def note(self, first, packet_id):
        is_due = self._is_due
        super().note(first, packet_id)
        if first == 0x50:
            self._is_due = is_due


class WithoutCommitOfMessages(Journal):
    """publish() returns before the message is on flash."""

    def put(self, *args):
        self._is_deferred, kept = True, self._is_deferred
        try:
            return super().put(*args)
        finally:
            self._is_deferred = kept


class ErasesBeforeCopying(Journal):
    """The oldest block is erased while its entries are in RAM only."""

    def _copy_block(self, block):
        image = bytes(self._dev.data)
        self._erase(block)
        load = self._load
        size = self._cells * self._cell

        def load_old(number, at, view):
            at = (number % self._blocks) * size + at * self._cell
            view[:] = image[at : at + len(view)]

        self._load = load_old
        try:
            super()._copy_block(block)
        finally:
            self._load = load


class ForgetsStatesWhenCopying(Journal):
    """A copy says that no PUBREC came."""

    def _pick(self):
        states = bytes(self._states)
        for k in range(len(states)):
            self._states[k] = min(states[k], 0x50)
        try:
            return super()._pick()
        finally:
            self._states[:] = states


class ForgetsHeldIds(Journal):
    """Held ids go with the block that says so."""

    def _list_held(self):
        self._listed = self._newest


BROKEN = [
    WithoutPubrecBarrier,
    WithoutCommitOfMessages,
    ErasesBeforeCopying,
    ForgetsStatesWhenCopying,
    ForgetsHeldIds,
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
    monkeypatch.setattr(opening, "crc32", lambda buf: unpack_from("<I", KEPT[-1])[0] & 0x3FFFFFFF)
    group = opening._Log.group

    def keeping(log, place, at):
        head = log.load(place, at, 12)
        n = head[2] | head[3] << 8
        if 32 <= n <= (log.cells - at) * log.cell:
            KEPT.append(bytes(log.load(place, at, n)[-4:]))
        return group(log, place, at)

    monkeypatch.setattr(opening._Log, "group", keeping)
    with pytest.raises((Broken, WrongUse, struct_error)):
        check_all(Journal)


KEPT: list[bytes] = []


def test_flash_model_refuses_to_turn_a_0_into_a_1():
    flash = Flash(1, 4096, 256)
    flash.writeblocks(0, bytes(256), 0)
    with pytest.raises(WrongUse):
        flash.writeblocks(0, b"\xff" * 256, 0)
