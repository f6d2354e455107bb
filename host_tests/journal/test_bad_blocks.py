"""Blocks that are worn out, saying so or in silence: the journal goes on without them."""

import random

import pytest

from host_tests.journal.steps import opened, put, recovered
from host_tests.powercut.life import Life, Setting
from host_tests.powercut.model import State
from host_tests.powercut.scenarios import walk
from host_tests.standin.nor import Flash
from umqtt31 import MQTTError
from umqtt31.errors import JOURNAL

_SAYS_SO = pytest.mark.parametrize("says_so", [True, False])


def make_calls(life, calls):
    """-> how many of the calls failed."""
    failed = 0
    for call in calls:
        try:
            life.do(call)
        except MQTTError as error:
            assert error.code == JOURNAL
            failed += 1
    return failed


@_SAYS_SO
@pytest.mark.parametrize("block", range(8))
def test_block_that_is_worn_out_when_the_ring_comes_to_it_is_passed_over(block, says_so):
    setting = Setting(blocks=8, slots=8, held_slots=3)
    flash = setting.flash()
    life = Life(setting, flash)
    calls = list(walk(block, setting, 400))
    make_calls(life, calls[:50])
    flash.worn[block] = says_so
    assert make_calls(life, calls[50:] + [("sync",), ("check",)]) == 0
    state = life.model.state
    assert Life(setting, setting.flash(bytes(flash.data))).state == state
    assert life.journal.bad_blocks() == 1


@_SAYS_SO
@pytest.mark.parametrize("worn", [(0, 1), (2, 5), (3, 4), (1, 4, 6)])
def test_blocks_that_are_worn_out_when_there_is_room_then_journal_goes_on(worn, says_so):
    setting = Setting(blocks=12, slots=4, held_slots=2)
    flash = setting.flash()
    flash.worn = dict.fromkeys(worn, says_so)
    life = Life(setting, flash)
    assert make_calls(life, [*walk(7, setting, 500), ("sync",), ("check",)]) == 0
    assert Life(setting, setting.flash(bytes(flash.data))).state == life.model.state
    assert life.journal.bad_blocks() == len(worn)


@_SAYS_SO
def test_worn_out_block_in_every_life_when_resets_come_between_then_nothing_is_lost(says_so):
    setting = Setting(blocks=7, slots=6, held_slots=2)
    flash = setting.flash()
    flash.worn[3] = says_so
    packet_id = 0
    expected = []
    for _ in range(60):
        life = Life(setting, flash)
        assert [m.packet_id for m in life.state.messages] == expected
        for _ in range(4):
            packet_id += 1
            life.do(("put", packet_id, 1, b"%d" % packet_id, False))
            expected.append(packet_id)
        while len(expected) > 2:
            life.do(("remove", expected.pop(0)))
        life.do(("sync",))
        life.do(("check",))


def test_block_that_fails_when_journal_is_nearly_full_then_what_was_accepted_is_there():
    flash = Flash(8)
    journal = opened(flash)
    count = 0
    while put(journal, count, count + 1):
        count += 1
    flash.worn[flash.wear.index(0)] = True
    for turn in range(200):
        journal.remove(turn % count)
        try:
            if not put(journal, turn % count, count + turn + 1):
                break
        except MQTTError:
            break
    for slot in range(turn + 2, turn + 42):
        journal.remove(slot % count)
    journal.sync()
    found = recovered(opened(flash, slots=500))
    assert sorted(m[1] for m in found.messages) == sorted(journal.ids.values())


def test_journal_of_four_blocks_when_one_is_worn_out_then_says_that_it_takes_nothing():
    flash = Flash(4)
    flash.worn[1] = False
    journal = opened(flash)
    with pytest.raises(MQTTError, match="too few good blocks left") as caught:
        for packet_id in range(1, 200):
            put(journal, 0, packet_id)
            journal.remove(0)
    assert caught.value.code == JOURNAL


def test_journal_of_four_blocks_when_one_failed_for_a_while_then_takes_messages_again():
    flash = Flash(4)
    flash.worn[1] = True
    journal = opened(flash)
    packet_id = 0
    with pytest.raises(MQTTError, match="too few good blocks left"):
        while packet_id < 200:
            packet_id += 1
            put(journal, 0, packet_id)
            journal.remove(0)
    flash.worn = {}
    for later in range(packet_id + 1, packet_id + 200):
        assert put(journal, 0, later)
        journal.remove(0)
    assert journal.journal.bad_blocks() == 0


def test_flash_that_takes_nothing_any_more_then_put_is_refused_and_nothing_is_due():
    flash = Flash(16)
    journal = opened(flash)
    assert put(journal, 0, 1)
    flash.worn = dict.fromkeys(range(16), False)
    for packet_id in (2, 3):
        with pytest.raises(MQTTError) as caught:
            put(journal, 1, packet_id)
        assert caught.value.code == JOURNAL
    journal.commit()  # so a packet of QoS 0 may go
    flash.worn = {}
    assert put(journal, 1, 4)
    assert [m[1] for m in recovered(opened(flash)).messages] == [1, 4]


def drop_old_states(model):
    """What was checked with every packet need not be again."""
    del model.states[:-1]
    model.required = 0


def is_done(life, *calls):
    """Make these calls up to one that fails -> did none?"""
    for call in calls:
        if make_calls(life, [call]):
            return False
    return True


@pytest.mark.parametrize("seed", range(24))
def test_random_use_at_the_limit_of_room_when_blocks_wear_out_and_heal_then_nothing_is_lost(seed):
    """One block at a time, for as long as 40 messages take; then all that there was is free."""
    source = random.Random(seed)
    setting = Setting(
        source.choice((6, 7, 9)), 512, 64, 32, 60, source.choice((20, 90)), 2, seed % 3 == 2
    )
    flash = setting.flash()
    life = Life(setting, flash)
    for packet_id in range(1, 500):
        drop_old_states(life.model)
        if packet_id % 40 == 0:
            flash.worn = {}
            if packet_id % 80:
                flash.worn[source.randrange(setting.blocks)] = source.random() < 0.5
        packet = source.randbytes(source.randrange(setting.slot_bytes))
        is_done(life, ("put", packet_id, 2, packet, True), ("commit",))
        ids = [message.packet_id for message in life.model.state.messages]
        if ids and (ids[-1] != packet_id or source.random() < 0.2):
            for _ in range(min(len(ids), source.choice((1, 1, 1, 9)))):
                life.do(("remove", ids.pop(source.randrange(len(ids)))))
        if packet_id % 10 == 0 and is_done(life, ("check",), ("sync",)):
            state = life.model.state
            found = Life(setting, setting.flash(bytes(flash.data))).state
            assert found == State(state.messages, state.held, found.last_id, state.is_clean)
    flash.worn = {}
    for message in life.model.state.messages:
        life.do(("remove", message.packet_id))
    for packet_id in range(501, 900):
        life.do(("put", packet_id, 1, b"x", False))
        life.do(("remove", packet_id))
    life.do(("sync",))
    assert life.journal.bad_blocks() == 0
