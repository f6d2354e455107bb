"""Flash operations that fail and later work again, at every place of a scenario."""

import random
from dataclasses import replace

import pytest

from host_tests.journal.steps import opened, put, recovered
from host_tests.powercut.life import Life, Setting
from host_tests.powercut.model import State
from host_tests.powercut.scenarios import walk
from host_tests.standin.nor import Flash
from umqtt31 import MQTTError
from umqtt31.errors import JOURNAL


def failing_life(setting, fail_at, failures):
    """-> a life on a flash that fails so."""
    flash = Flash(setting.blocks, setting.block_bytes, setting.page_bytes)
    flash.fail_at(fail_at, failures)
    return Life(setting, flash), flash


def do_at_last(life, call):
    for _ in range(9):
        try:
            return life.do(call)
        except MQTTError:
            pass
    raise AssertionError(call)


def make_calls(life, calls):
    """Make all calls, those that fail as well, and sync."""
    for call in calls:
        if call[0] in ("remove", "pubrec"):
            do_at_last(life, ("check",))  # the core has what it has answers for
        try:
            life.do(call)
        except MQTTError as error:
            assert error.code == JOURNAL
            assert call[0] != "remove"
            if call[0] == "sync":
                do_at_last(life, call)
    do_at_last(life, ("sync",))


@pytest.mark.parametrize("failures", [1, 2, 5])
@pytest.mark.parametrize("is_deferred", [False, True])
def test_journal_when_operations_fail_for_a_while_then_what_was_accepted_is_there(
    failures, is_deferred
):
    for fail_at in range(40):
        setting = Setting(blocks=6, slots=5, held_slots=7, group_commit=is_deferred)
        life, flash = failing_life(setting, fail_at, failures)
        make_calls(life, walk(fail_at, replace(setting, held_slots=2), 90))
        life.do(("check",))
        state = life.model.state
        found = Life(setting, setting.flash(bytes(flash.data))).state
        # A refused message uses up its packet id.
        last_id = found.last_id
        assert last_id >= state.last_id
        assert found == State(state.messages, state.held, last_id, state.is_clean), fail_at


def test_put_when_only_what_follows_it_fails_then_a_reset_finds_what_was_accepted_and_no_more():
    refused = 0
    for works in range(20, 90):
        setting = Setting(blocks=5, slots=8, held_slots=7)
        flash = setting.flash()
        life = Life(setting, flash)

        def wear_out(at, before, after, flash=flash, works=works):
            if flash.operations >= works:  # this one is the last that is done
                flash.worn = dict.fromkeys(range(5), True)

        flash.watch = wear_out
        for call in walk(works % 7, replace(setting, held_slots=2), 200):
            try:
                life.do(call)
            except MQTTError:
                refused += call[0] == "put"
                break
        found = Life(setting, setting.flash(bytes(flash.data))).state
        assert found in [s._replace(last_id=found.last_id) for s in life.model.allowed()], works
    assert refused > 20


class Doubtful(Flash):
    """So many programs fail; what the first of them wrote is there all the same."""

    failing = 0

    def writeblocks(self, block, buf, offset=None):
        is_first = self.failing == 4
        if not self.failing or is_first:
            super().writeblocks(block, buf, offset)
        if self.failing:
            self.failing -= 1
            raise OSError(5)


def test_put_when_message_is_there_twice_then_its_packet_id_is_the_last():
    """The second time it stands in a new block, whose title knows the messages before it."""
    flash = Doubtful(8)
    journal = opened(flash)
    put(journal, 0, 1)
    flash.failing = 4
    put(journal, 1, 2)
    found = recovered(opened(flash))
    assert ([m[1] for m in found.messages], found.last_id) == ([1, 2], 2)


def test_remove_when_flash_fails_for_long_then_never_raises_and_nothing_older_is_lost():
    flash = Flash(16)
    journal = opened(flash)
    for slot in range(150):
        assert put(journal, slot, slot + 1)
    flash.fail_at(0, 1000)
    for slot in range(1, 149):
        journal.remove(slot)
    with pytest.raises(MQTTError):
        journal.sync()
    flash.fail_at(0, 0)
    journal.sync()
    assert [m[1] for m in recovered(opened(flash)).messages] == [1, 150]


def test_commit_when_flash_fails_then_is_still_due():
    flash = Flash(16)
    journal = opened(flash, group_commit=True)
    put(journal, 0, 1)
    journal.hold_id(5)
    flash.fail_at(0, 100)  # more often than these calls try
    for _ in range(3):
        with pytest.raises(MQTTError):
            journal.commit()
    flash.fail_at(0, 0)
    journal.commit()
    found = recovered(opened(flash))
    assert ([m[1] for m in found.messages], found.held) == ([1], [5])


def test_log_behind_blocks_that_could_not_be_read_back_is_the_newest():
    """They were programmed all the same, and were to come behind it."""
    flash = Flash(8)
    journal = opened(flash)
    put(journal, 0, 1)

    def fail():
        raise OSError(5)

    flash.watch_read = fail
    journal.hold_id(5)
    for _ in range(3):
        with pytest.raises(MQTTError):
            journal.commit()
    flash.watch_read = None
    journal.commit()
    journal.release_id(5)
    journal.remove(0)
    put(journal, 0, 2)
    found = recovered(opened(flash))
    assert ([m[1] for m in found.messages], found.held) == ([2], [])


@pytest.mark.parametrize("failures", range(2, 9))
def test_journal_when_operations_fail_for_a_while_then_it_takes_messages_again(failures):
    for fail_at in range(150):
        flash = Flash(6, 1024, 128)
        journal = opened(flash, program_bytes=128, erase_bytes=1024)
        flash.fail_at(fail_at, failures)
        refused = 0
        for packet_id in range(1, 100):
            try:
                put(journal, 0, packet_id, b"x" * 90)
                journal.remove(0)
                journal.sync()
            except MQTTError:
                refused += 1
        assert refused < 9, fail_at


def test_put_when_full_and_enough_is_removed_then_accepts():
    journal = opened(Flash(8), slots=500)
    count = 0
    while put(journal, count, count + 1):
        count += 1
    large = b"x" * 256
    for slot in range(4):
        journal.remove(slot)
        assert not put(journal, 600, 600, large)
    journal.remove(4)
    assert put(journal, 600, 600, large)


def test_held_ids_by_the_hundred_survive_and_cost_no_room():
    flash = Flash(8)
    journal = opened(flash, held_slots=36)
    for packet_id in range(1, 3001):
        journal.hold_id(packet_id)
        if packet_id % 20 == 0:
            journal.commit()
        if packet_id > 1000:
            journal.release_id(packet_id - 900)
    journal.sync()
    found = recovered(opened(flash, held_slots=40))
    assert found.held == [*range(1, 101), *range(2101, 3001)]
    assert flash.erases > 2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_flash_that_fails_often_wears_all_blocks_alike(rate, seed):
    """Issue: erase counts of 9, 4, 7, 2, 1, 0, 0, 0."""
    source = random.Random(seed)
    flash = Flash(8, 1024, 128)
    journal = opened(flash, program_bytes=128, erase_bytes=1024)

    def fail(at, before, after):
        if source.random() < rate:
            raise OSError(5)

    flash.watch = fail
    here = []
    for packet_id in range(1, 600):
        try:
            if put(journal, packet_id, packet_id, b"x" * 90):
                here.append(packet_id)
            if len(here) > 3:
                journal.remove(here.pop(0))
            journal.tidy()
        except MQTTError as error:
            assert error.code == JOURNAL
    assert max(flash.wear) - min(flash.wear) <= 2


def test_session_and_level_are_recorded():
    flash = Flash(8)
    journal = opened(flash)
    put(journal, 0, 1, sent=True)
    journal.hold_id(3)
    journal.renew(True)
    journal.commit()
    operations = flash.operations
    journal.renew(True)
    journal.commit()
    assert flash.operations == operations
    found = recovered(opened(flash))
    assert (found.is_clean, found.held, found.messages[0][4]) == (True, [], False)


def opened_at(level, flash):
    return opened(flash, level=level)


@pytest.mark.parametrize(("before", "after"), [(3, 5), (4, 5), (5, 3), (5, 4)])
def test_journal_of_another_level_when_it_holds_messages_is_refused(before, after):
    flash = Flash(8)
    journal = opened_at(before, flash)
    put(journal, 0, 1)
    with pytest.raises(MQTTError, match=f"messages of level {before}, not {after}") as caught:
        opened_at(after, flash)
    assert caught.value.code == JOURNAL
    journal.remove(0)
    journal.sync()
    assert recovered(opened_at(after, flash)).messages == []
    flash = Flash(8)
    journal = opened_at(before, flash)
    assert recovered(opened_at(after, flash)).messages == []


def test_journal_of_levels_3_and_4_is_the_same():
    flash = Flash(8)
    put(opened_at(3, flash), 0, 1)
    assert len(recovered(opened_at(4, flash)).messages) == 1
