"""Flash operations that fail and later work again, at every place of a scenario; blocks that are
worn out, saying so or in silence; bits that turn, which nobody is told: the journal goes on."""

import contextlib
import random
from dataclasses import replace

import pytest

from host_tests.journal.steps import fail, fails, filled, found, journal_error, opened, turn
from host_tests.powercut.life import Life, Opened, Setting, found_on
from host_tests.powercut.scenarios import walk
from host_tests.standin.nor import Flash
from umqtt31 import MQTTError
from umqtt31.errors import JOURNAL
from umqtt31.journal import Journal

_SAYS_SO = pytest.mark.parametrize("says_so", [True, False])


def make_calls(life, calls):
    """-> those that failed."""
    failed = []
    for call in calls:
        try:
            life.do(*call)
        except MQTTError as error:
            assert error.code == JOURNAL
            failed.append(call[0])
    return failed


def do_at_last(life, name):
    assert any(not make_calls(life, [(name,)]) for _ in range(9)), name


def is_kept(life, setting, flash):
    """Does a reset find just what is accepted?  A refused message uses up its packet id."""
    state, after = life.state, Life(setting, setting.flash(bytes(flash.data))).state
    assert after.last_id >= state.last_id
    return after == state._replace(last_id=after.last_id)


# --- for a while -------------------------------------------------------------------------


@pytest.mark.parametrize("failures", [1, 2, 5])
@pytest.mark.parametrize("is_deferred", [False, True])
def test_journal_when_operations_fail_for_a_while_then_what_was_accepted_is_there(
    failures, is_deferred
):
    for fail_at in range(40):
        setting = Setting(blocks=6, slots=5, held_slots=7, group_commit=is_deferred)
        flash = setting.flash()
        flash.fail_at(fail_at, failures)
        life = Life(setting, flash)
        for call in walk(fail_at, replace(setting, held_slots=2), 90):
            if call[0] in ("remove", "pubrec"):
                do_at_last(life, "check")  # the core has what it has answers for
            failed = make_calls(life, [call])
            assert failed != ["remove"]
            if failed == ["sync"]:
                do_at_last(life, "sync")
        do_at_last(life, "sync")
        life.do("check")
        assert is_kept(life, setting, flash), fail_at


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
            if make_calls(life, [call]):
                refused += call[0] == "put"
                break
        after = Life(setting, setting.flash(bytes(flash.data))).state
        assert after in [s._replace(last_id=after.last_id) for s in life.allowed()], works
    assert refused > 20


def test_put_when_room_is_made_under_its_group_and_cut_then_its_packet_id_is_the_last(monkeypatch):
    """As where blocks fail under it: there is no room in front of it any more."""
    monkeypatch.setattr(Journal, "_make_room", lambda journal, n: None)
    setting = Setting(5, 512, 64, 32, slots=30, held_slots=2)
    flash = setting.flash()
    journal = Opened(setting, flash)
    journal.hold(7)
    images = []
    flash.watch = lambda *_: images.append(bytes(flash.data))
    for packet_id in range(1, 80):
        images.clear()
        assert journal.put(packet_id)
        journal.remove(packet_id - 9)
        for state in [found_on(setting, image) for image in images]:
            assert state.last_id == max(state.ids, default=0)


class Doubtful(Flash):
    """So many programs fail; what the first of them wrote is there all the same."""

    failing = 0

    def writeblocks(self, block, buf, offset=None):
        if self.failing in (0, 4):
            super().writeblocks(block, buf, offset)
        if self.failing:
            self.failing -= 1
            raise OSError(5)


def test_put_when_message_is_there_twice_then_its_packet_id_is_the_last():
    """The second time it stands in a new block, whose title knows the messages before it."""
    journal = opened(Doubtful(8)).do("put 1")
    journal.flash.failing = 4
    after = found(journal.do("put 2"))
    assert (after.ids, after.last_id) == ([1, 2], 2)


def test_blocks_that_failed_hold_no_title_any_more_when_one_before_them_is_written():
    """What their titles say of the session is old by then."""
    journal = opened(8).do("put 1; hold 5")
    program = journal.flash.writeblocks
    fail(journal, "commit", writeblocks=lambda *args: program(*args) or 5)
    worn = journal.flash.worn
    worn[3] = True
    fail(journal, "commit")
    del worn[3]
    assert found(journal.do("online; commit")).messages[0].maybe_sent


def test_worn_out_block_behind_blocks_that_failed_for_a_while_is_no_hindrance():
    journal = opened(8).do("put 1")
    journal.flash.worn[3] = True
    fail(journal, "put 2", writeblocks=fails)
    assert found(journal.do("put 3")).ids == [1, 3]


def test_remove_when_flash_fails_for_long_then_never_raises_and_nothing_older_is_lost():
    journal = opened(16)
    assert filled(journal, 150) == 150
    journal.flash.fail_at(0, 1000)
    for packet_id in range(2, 150):
        journal.remove(packet_id)
    fail(journal, "sync")
    journal.flash.fail_at(0, 0)
    assert found(journal.do("sync")).ids == [1, 150]


def test_commit_when_flash_fails_then_is_still_due():
    journal = opened(16, group_commit=True).do("put 1; hold 5")
    journal.flash.fail_at(0, 100)  # more often than these calls try
    fail(journal, "commit", "commit", "commit")
    journal.flash.fail_at(0, 0)
    after = found(journal.do("commit"))
    assert (after.ids, after.held) == ([1], (5,))


def test_log_behind_blocks_that_could_not_be_read_back_is_the_newest():
    """They were programmed all the same, and were to come behind it."""
    journal = opened(8).do("put 1; hold 5")
    journal.flash.watch_read = fails
    fail(journal, "commit", "commit", "commit")
    journal.flash.watch_read = None
    after = found(journal.do("commit; release 5; remove 1; put 2"))
    assert (after.ids, after.held) == ([2], ())


def test_erase_when_device_fails_then_journal_error():
    journal = opened(4, slots=20)
    # More than the blocks that were blank take.
    calls = (f"put {n}; remove {n - 4}" for n in range(1, 200))
    fail(journal, "; ".join(calls), erase=fails)
    for packet_id in range(1, 200):
        journal.remove(packet_id)
    with contextlib.suppress(MQTTError):  # from now on they are tried again
        journal.do("put 998")
    assert found(journal.do("put 999")).ids[-1] == 999


@pytest.mark.parametrize("failures", range(2, 9))
def test_journal_when_operations_fail_for_a_while_then_it_takes_messages_again(failures):
    for fail_at in range(150):
        journal = opened(Flash(6, 1024, 128), program_bytes=128, erase_bytes=1024)
        journal.flash.fail_at(fail_at, failures)
        refused = 0
        for packet_id in range(1, 100):
            try:
                journal.put(packet_id, packet=b"x" * 90)
                journal.do(f"remove {packet_id}; sync")
            except MQTTError:
                refused += 1
        assert refused < 9, fail_at


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.2])
def test_flash_that_fails_often_wears_all_blocks_alike(rate, seed):
    """Issue: erase counts of 9, 4, 7, 2, 1, 0, 0, 0."""
    source = random.Random(seed)
    journal = opened(Flash(8, 1024, 128), program_bytes=128, erase_bytes=1024)
    journal.flash.watch = lambda *_: source.random() < rate and fails()
    here = []
    for packet_id in range(1, 600):
        try:
            if journal.put(packet_id, packet=b"x" * 90):
                here.append(packet_id)
            if len(here) > 3:
                journal.remove(here.pop(0))
            journal.tidy()
        except MQTTError as error:
            assert error.code == JOURNAL
    assert max(journal.flash.wear) - min(journal.flash.wear) <= 2


# --- for ever ----------------------------------------------------------------------------


@_SAYS_SO
@pytest.mark.parametrize("block", range(8))
def test_block_that_is_worn_out_when_the_ring_comes_to_it_is_passed_over(block, says_so):
    setting = Setting(blocks=8, slots=8, held_slots=3)
    flash = setting.flash()
    life = Life(setting, flash)
    calls = list(walk(block, setting, 400))
    make_calls(life, calls[:50])
    flash.worn[block] = says_so
    assert make_calls(life, calls[50:] + [("sync",), ("check",)]) == []
    assert Life(setting, setting.flash(bytes(flash.data))).state == life.state
    assert life.journal.bad_blocks() == 1


@_SAYS_SO
@pytest.mark.parametrize("worn", [(0, 1), (2, 5), (3, 4), (1, 4, 6)])
def test_blocks_that_are_worn_out_when_there_is_room_then_journal_goes_on(worn, says_so):
    setting = Setting(blocks=12, slots=4, held_slots=2)
    flash = setting.flash()
    flash.worn = dict.fromkeys(worn, says_so)
    life = Life(setting, flash)
    assert make_calls(life, [*walk(7, setting, 500), ("sync",), ("check",)]) == []
    assert Life(setting, setting.flash(bytes(flash.data))).state == life.state
    assert life.journal.bad_blocks() == len(worn)


@_SAYS_SO
def test_worn_out_block_in_every_life_when_resets_come_between_then_nothing_is_lost(says_so):
    setting = Setting(blocks=7, slots=6, held_slots=2)
    flash = setting.flash()
    flash.worn[3] = says_so
    goes_on_over_resets(setting, flash, lives=60, messages=4)


def goes_on_over_resets(setting, flash, lives, messages):
    """In each life so many messages come, and all but two are done."""
    packet_id = 0
    expected = []
    for _ in range(lives):
        life = Life(setting, flash)
        assert life.state.ids == expected
        for _ in range(messages):
            packet_id += 1
            life.do("put", packet_id, 1, b"%d" % packet_id, False)
            expected.append(packet_id)
            if len(expected) > 2:
                life.do("remove", expected.pop(0))
        life.do("sync")
        life.do("check")


@pytest.mark.parametrize("block_bytes", [1024, 2048, 4096, 65536])
@pytest.mark.parametrize("program_bytes", [64, 256])
def test_journal_on_blocks_of_any_size_goes_on_over_resets(block_bytes, program_bytes):
    setting = Setting(6, block_bytes, program_bytes, 64, slots=9, slot_bytes=100, held_slots=7)
    messages = min(2 * block_bytes // program_bytes, 200)
    goes_on_over_resets(setting, setting.flash(), lives=8, messages=messages)


def test_block_that_fails_when_journal_is_nearly_full_then_what_was_accepted_is_there():
    journal = opened(8)
    count = filled(journal)
    journal.flash.worn[journal.flash.wear.index(0)] = True
    kept = list(range(1, count + 1))
    with contextlib.suppress(MQTTError):
        for packet_id in range(count + 1, count + 201):
            journal.remove(kept.pop(0))
            if not journal.put(packet_id):
                break
            kept.append(packet_id)
    for _ in range(40):
        journal.remove(kept.pop(0))
    assert found(journal.do("sync"), slots=500).ids == kept


@_SAYS_SO
def test_journal_of_four_blocks_when_one_is_worn_out_then_takes_nothing_until_it_works(says_so):
    journal = opened(4)
    journal.flash.worn[1] = says_so
    packet_id = 0
    with journal_error("too few good blocks left"):
        while packet_id < 200:
            packet_id += 1
            turn(journal, 1, first=packet_id)
    journal.flash.worn = {}
    turn(journal, 200, first=packet_id + 1)
    assert journal.journal.bad_blocks() == 0


def test_flash_that_takes_nothing_any_more_then_put_is_refused_and_nothing_is_due():
    journal = opened(16).do("put 1")
    journal.flash.worn = dict.fromkeys(range(16), False)
    fail(journal, "put 2", "put 3")
    journal.commit()  # so a packet of QoS 0 may go
    journal.flash.worn = {}
    assert journal.put(4)
    assert found(journal).ids == [1, 4]


@pytest.mark.parametrize("seed", range(24))
def test_random_use_at_the_limit_of_room_when_blocks_wear_out_and_heal_then_nothing_is_lost(seed):
    """One block at a time, for as long as 40 messages take; then all that there was is free."""
    source = random.Random(seed)
    blocks, slot_bytes = source.choice((6, 7, 9)), source.choice((20, 90))
    setting = Setting(blocks, 512, 64, 32, 60, slot_bytes, 2, seed % 3 == 2)
    flash = setting.flash()
    life = Life(setting, flash)
    for packet_id in range(1, 500):
        life.forget_old_states()
        if packet_id % 40 == 0:
            flash.worn = {}
            if packet_id % 80:
                flash.worn[source.randrange(setting.blocks)] = source.random() < 0.5
        packet = source.randbytes(source.randrange(setting.slot_bytes))
        if not make_calls(life, [("put", packet_id, 2, packet, True)]):
            make_calls(life, [("commit",)])
        ids = life.state.ids
        if ids and (ids[-1] != packet_id or source.random() < 0.2):
            for _ in range(min(len(ids), source.choice((1, 1, 1, 9)))):
                life.do("remove", ids.pop(source.randrange(len(ids))))
        if packet_id % 10 == 0 and not make_calls(life, [("check",)]):
            if not make_calls(life, [("sync",)]):
                assert is_kept(life, setting, flash)
    flash.worn = {}
    for packet_id in life.state.ids:
        life.do("remove", packet_id)
    for packet_id in range(501, 900):
        life.do("put", packet_id, 1, b"x", False)
        life.do("remove", packet_id)
    life.do("sync")
    assert life.journal.bad_blocks() == 0


# --- bits that turn: what is read back wrong is given up ---------------------------------


def spoil(flash, packet):
    """Turn a bit in each copy of this packet."""
    at = flash.data.find(packet)
    assert at >= 0
    while at >= 0:
        flash.spoil(at + len(packet) - 1)
        at = flash.data.find(packet)


def behind(*packets):
    """-> a journal with these messages, with ids from 1 on, which lie on flash alone."""
    journal = opened(8)
    for packet_id, packet in enumerate(packets, 1):
        assert journal.put(packet_id, packet=packet, in_ram=0)
    return journal


def fetched(journal):
    """-> what comes from flash: packets, None for those that are lost."""
    return [message and message.packet for message in journal.state().messages]


@pytest.mark.parametrize("size", [2, 63, 64, 65, 200, 256])
def test_packet_when_a_bit_of_it_turned_then_it_is_lost_and_no_other(size):
    packet = bytes(i * 7 + 1 & 255 for i in range(size))
    journal = behind(b"before", packet, b"behind")
    spoil(journal.flash, packet)
    assert fetched(journal) == [b"before", None, b"behind"]


def test_newest_message_that_cannot_be_read_at_a_reset_is_lost_where_a_later_note_knows_it():
    """Otherwise the next one would have its number, and be one that was sent."""
    journal = opened(8).do("put 1")
    journal.put(2, packet=b"spoilt")
    spoil(journal.do("online; commit").flash, b"spoilt")
    again = opened(journal.flash).do("put 3")
    sent = [m and (m.packet_id, m.maybe_sent) for m in found(again).messages]
    assert sent == [(1, True), None, (3, False)]


@pytest.mark.parametrize("last", [1, 65000])
def test_id_of_a_newest_message_that_cannot_be_read_is_not_the_last_one_of_a_reset(last):
    """The next message would have it, and a broker that holds it take that for a repetition."""
    journal = opened(8)
    journal.put(last)
    journal.put(last + 3, 2, packet=b"spoilt")
    spoil(journal.do(f"pubrec {last + 3}; commit").flash, b"spoilt")
    assert 1 <= (found(journal).last_id - last - 3) % 65535 < 60000


def test_message_that_is_well_may_have_been_sent_after_a_lost_one_before_it():
    journal = behind(b"spoilt", b"well")
    spoil(journal.flash, b"spoilt")
    again = opened(journal.flash)
    again.journal.fetch(bytearray(300), 0)
    after = found(again.do("remove 1; online; sync"))
    assert [(m.packet_id, m.maybe_sent) for m in after.messages] == [(2, True)]


def test_lost_packet_says_which_it_was_and_is_done_when_it_is_given_up():
    journal = behind(b"message 1", b"message 2")
    spoil(journal.flash, b"message 1")
    ring = bytearray(300)
    assert journal.journal.fetch(ring, 0) > 5 and ring[0] == 0 and ring[4] == 1
    assert found(journal.do("remove 1; sync")).ids == [2]


def test_every_bit_of_an_entry_when_it_turned_then_never_another_packet():
    packet = b"0\x0b\x00\x03t/121.5 C"
    journal = behind(packet)
    at = journal.flash.data.find(packet)
    for bit in range(len(packet) * 8):
        journal.flash.spoil(at + bit // 8, 1 << bit % 8)
        after = opened(Flash(8, image=journal.flash.data))
        # The group's own check.
        assert (after.state().messages, after.journal.corrupt_pages) == ((), 1)
        journal.flash.spoil(at + bit // 8, 1 << bit % 8)
    assert fetched(journal) == [packet]


def test_packet_that_turned_after_opening_is_lost_as_well():
    journal = opened(behind(b"the message").flash)
    spoil(journal.flash, b"the message")
    assert fetched(journal) == [None]


def test_spoilt_packet_when_its_block_is_given_up_then_it_is_lost_and_no_other():
    journal = behind(b"the one that is spoilt", b"the one that is well")
    spoil(journal.flash, b"the one that is spoilt")
    for packet_id in range(3, 400):
        for first in (0x30, 0x62):
            journal.journal.note(first, packet_id)
            journal.commit()
    assert journal.flash.erases > 5
    assert fetched(journal) == [None, b"the one that is well"]
    assert [packet_id for packet_id in found(journal).ids if packet_id] == [2]


def test_reads_that_are_wrong_once_are_repeated_in_whatever_block():
    packets = [bytes([k]) * 200 for k in range(40)]
    journal = behind(*packets)
    flash, seen = journal.flash, set()
    read_blocks = flash.readblocks

    def read_wrong_at_first(block, buf, offset=0):
        read_blocks(block, buf, offset)
        if len(buf) > 20 and (block, offset) not in seen:
            seen.add((block, offset))
            buf[20] ^= 1

    flash.readblocks = read_wrong_at_first
    for packet in packets:
        seen.clear()
        assert journal.fetch().packet == packet


def test_page_that_keeps_a_wrong_bit_then_the_next_one_takes_the_message():
    journal = opened(8).do("put 1")
    flash = journal.flash
    write_blocks = flash.writeblocks

    def write_wrong_once(block, buf, offset=None):
        flash.writeblocks = write_blocks
        write_blocks(block, buf, offset)
        flash.spoil(block * flash.block_bytes + offset + 140, 0x01)

    flash.writeblocks = write_wrong_once
    assert journal.put(2)
    assert found(flash).ids == [1, 2]
