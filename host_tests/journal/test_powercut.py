"""Every flash operation of every scenario cut in every way, and cut again in recovery; journals
with one thing broken, which the checker has to catch.

`python -m host_tests powercut` does the same with longer scenarios and all pairs of cuts.
"""

from dataclasses import replace
from struct import error as struct_error

import pytest

from host_tests.powercut.checker import Broken, Checker
from host_tests.powercut.life import Opened, Setting, found_on
from host_tests.powercut.scenarios import of_any_sizes, scenarios
from host_tests.sim.wrong_clients import make_mistake
from host_tests.standin.nor import Flash, WrongUse
from umqtt31 import opening
from umqtt31.journal import Journal

SCALE = 2
TORN = 4
# All but the one with the sizes of a board, which takes as long as the others.
SMALL = [one for one in scenarios() if one.setting.block_bytes < 4096]


@pytest.mark.parametrize("scenario", SMALL, ids=lambda scenario: scenario.name)
def test_journal_cut_early_recovers_the_state_before_or_after(scenario):
    """A few seconds of the power cuts: notices most mistakes at once; for `proof mutants`."""
    checker = Checker(torn=1)
    checker.run(scenario)
    assert checker.count["once"] and checker.count["carried on"]


@pytest.mark.parametrize("scenario", [*scenarios(SCALE)], ids=lambda scenario: scenario.name)
def test_journal_cut_at_any_operation_recovers_the_state_before_or_after(scenario, capsys):
    checker = Checker(torn=TORN)
    checker.run(scenario)
    with capsys.disabled():
        print(f"\n{checker.count.total():,} power cuts: {scenario.name}")


@pytest.mark.parametrize("seed", range(100))
def test_journal_of_any_sizes_when_cut_recovers_the_state_before_or_after(seed):
    Checker(torn=1).run(of_any_sizes(seed))


_TIGHT = Setting(5, 512, 64, 64, slots=100, slot_bytes=11, held_slots=3)


def _filled():
    flash = _TIGHT.flash()
    journal = Opened(_TIGHT, flash)
    packet_id = 0
    while journal.put(packet_id + 1, in_ram=0):
        packet_id += 1
    journal.do("hold 1000; hold 2000; commit")
    return flash


@pytest.mark.parametrize("at", range(1, 25))
def test_full_journal_cut_at_the_same_operation_again_and_again_never_gets_stuck(at):
    """What it holds of received ids has to find its place beside what is copied, once."""
    flash = _filled()
    for _ in range(12):
        _cut_in_use(flash, at)
    journal = Opened(_TIGHT, flash)
    erases = flash.erases
    for _ in range(20):
        journal.tidy()
    assert flash.erases - erases < 10
    while journal.behind:
        journal.remove(journal.fetch().packet_id)
    journal.sync()
    assert journal.put(999)


def test_log_that_fills_its_ring_when_a_block_cannot_be_read_loses_no_other():
    """The newest block is left out, and the one before it is gone."""
    flash = _filled()
    for _ in range(5):
        _cut_in_use(flash, 36)
    flash.data[1536:2048] = bytes(512)
    before = found_on(_TIGHT, bytes(flash.data))
    Opened(_TIGHT, flash).do("release 1000; commit")
    assert found_on(_TIGHT, bytes(flash.data)).messages == before.messages


class Cut(Exception):
    """The power is gone."""


def _cut_in_use(flash, at):
    # Operation `at` of a life in which QoS 2 messages come is torn.
    operations = 0

    def watch(address, before, after):
        nonlocal operations
        operations += 1
        if operations == at:
            flash.data[address : address + len(after) // 2] = after[: len(after) // 2]
            raise Cut

    journal = Opened(_TIGHT, flash)
    flash.watch = watch
    with pytest.raises(Cut):
        for packet_id in range(1, 41):
            journal.do(f"tidy; hold {packet_id}; commit; release {packet_id}; commit")
    flash.watch = None


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


BROKEN = {
    "PUBREL may overtake the record that PUBREC came": (
        Journal, "note", "self._write(_RECEIVED, number)",
        "self._make_room(_NOTE)\n            self._append(_RECEIVED, number)"),
    "publish() returns before the message is on flash": (
        Journal, "put", "    if self._is_deferred:\n        self._is_due = True",
        "    if True:\n        self._is_due = True"),
    "a copy says that no PUBREC came": (
        Journal, "_pick", "state = (buf[where] if k < 0 else self._states[k]) & 0x70",
        "state = min((buf[where] if k < 0 else self._states[k]) & 0x70, 0x50)"),
    "held ids go with the block that says so": (
        Journal, "_list_held", "for k in range(0, len(held), 3):", "for k in ():"),
    "the CRC is ignored": (
        opening._Log, "group", "return buf if crc32(buf) == crc else None", "return buf"),
}  # fmt: skip


def is_caught(journal):
    """Does the checker notice this journal?"""
    with pytest.raises((Broken, WrongUse, struct_error)):
        for scenario in scenarios():
            setting = replace(scenario.setting, journal=journal)
            Checker(torn=2).run(scenario._replace(setting=setting))
    return True


def test_checker_catches_a_journal_that_erases_before_copying():
    assert is_caught(ErasesBeforeCopying)


@pytest.mark.parametrize("what", BROKEN)
def test_checker_catches_a_broken_journal(what, monkeypatch):
    make_mistake(monkeypatch, *BROKEN[what])
    assert is_caught(Journal)


def test_flash_model_refuses_to_turn_a_0_into_a_1():
    flash = Flash(1)
    flash.writeblocks(0, bytes(256), 0)
    with pytest.raises(WrongUse):
        flash.writeblocks(0, b"\xff" * 256, 0)
