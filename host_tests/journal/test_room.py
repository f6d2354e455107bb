"""How much a journal takes, what clearing gives back, what its refusals say, and how much flash
work a message is: the budgets, counted and computed."""

import random

import pytest

from host_tests.journal.steps import filled, found, opened
from host_tests.journal.work import (
    PACKET,
    erases_per_message,
    journal_work,
    life_years,
)
from host_tests.powercut.life import Life, Setting
from tools.project import ROOT
from umqtt31 import MQTTError
from umqtt31.errors import JOURNAL


@pytest.mark.parametrize(
    ("blocks", "sets", "count"),
    [(4, 1, 53), (8, 4, 269), (8, 36, 264), (5, 4, 107), (16, 36, 696)],
)
def test_journal_takes_as_many_cells_as_its_format_says(blocks, sets, count):
    """All blocks but three; of each, 54 of its 64 cells; without those for lists of held ids."""
    assert filled(opened(blocks, slots=2000, held_slots=sets)) == count


def test_remove_when_full_then_there_is_room_for_just_as_many():
    journal = opened(8, slots=2000)
    filled(journal)
    assert filled(journal.do("remove 1; remove 2; remove 3")) == 3


def test_put_when_full_and_enough_is_removed_then_accepts():
    journal = opened(8, slots=500)
    filled(journal)
    large = b"x" * 256
    for packet_id in range(1, 5):
        journal.remove(packet_id)
        assert not journal.put(600, packet=large)
    journal.remove(5)
    assert journal.put(600, packet=large)


def test_full_journal_when_opened_again_then_full_as_before():
    journal = opened(8, slots=2000)
    filled(journal)
    again = opened(journal.flash, slots=2000)
    assert not again.put(2000)
    assert not again.do("remove 1; put 2000").put(2001)


def test_held_ids_when_opened_again_then_take_no_room_from_messages():
    journal = opened(8).do("hold 1; hold 2; hold 3; hold 4; commit")
    assert filled(opened(journal.flash, slots=2000)) == 269


def test_held_ids_by_the_hundred_survive_and_cost_no_room():
    journal = opened(8, held_slots=36)
    for packet_id in range(1, 3001):
        journal.hold(packet_id)
        if packet_id % 20 == 0:
            journal.commit()
        if packet_id > 1000:
            journal.release(packet_id - 900)
    journal.sync()
    assert found(journal, held_slots=40).held == (*range(1, 101), *range(2101, 3001))
    assert journal.flash.erases > 2


FOREIGN = "; erase_foreign=True would erase it"
REFUSALS = [
    ({"client_id": b"other"}, "is of client b'node-17'" + FOREIGN),
    ({"program_bytes": 512}, "has another layout" + FOREIGN),
    ({"program_bytes": 128}, "has another layout" + FOREIGN),
    ({"cell_bytes": 128}, "has another layout" + FOREIGN),
    ({"erase_bytes": 8192}, "has another layout" + FOREIGN),
    ({"slot_bytes": 8}, "holds more than fits: raise buffer_size to 100"),
    ({"slots": 1}, "holds more than fits: raise max_mqueue_len"),
    ({"held_slots": 0}, "holds more than fits: raise max_awaiting_rel"),
    ({"held_slots": 1}, "holds more than fits: raise max_awaiting_rel"),
]


@pytest.mark.parametrize(("change", "text"), REFUSALS)
def test_journal_when_it_does_not_fit_then_says_what_to_do_and_is_unchanged(change, text):
    """Unless it is told to erase what is not the client's own."""
    journal = opened(8)
    journal.put(1, packet=bytes(100))
    journal.do("put 2; hold 7; hold 2000; commit")
    image = bytes(journal.flash.data)
    is_foreign = text.endswith(FOREIGN)
    for is_erasing in {False, not is_foreign}:
        with pytest.raises(MQTTError) as caught:
            opened(journal.flash, **{"slots": 20, **change}, erase_foreign=is_erasing)
        assert (caught.value.code, str(caught.value)) == (JOURNAL, f"journal {text}")
        assert bytes(journal.flash.data) == image
    if is_foreign:
        assert found(journal, **change, erase_foreign=True).messages == ()
        assert found(journal, **change).messages == ()
    else:
        assert found(journal, slots=2, slot_bytes=100, held_slots=2).ids == [1, 2]


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 511, 700])
def test_message_of_any_length_when_opened_again_then_is_there_whole(size):
    packet = bytes(i * 7 & 255 for i in range(size))
    journal = opened(8, slot_bytes=700)
    assert journal.put(9, 2, packet, True)
    assert journal.put(10, packet=b"next")
    assert [m.packet for m in found(journal, slot_bytes=700).messages] == [packet, b"next"]


@pytest.mark.parametrize("seed", range(12))
def test_random_use_at_the_limit_of_room_never_gets_stuck(seed):
    """Reclaiming has room by the argument in docs/reference/journal-format.md; this tries it."""
    source = random.Random(seed)
    page_bytes = source.choice((64, 128, 256))
    cell_bytes = source.choice((32, 64))
    pages = source.choice((8, 16))
    slot_bytes = source.randrange(20, max(21, page_bytes * pages // 4 - 40))
    blocks = source.choice((5, 6, 9))
    sizes = blocks, page_bytes * pages, page_bytes, cell_bytes, 60, slot_bytes, 2, seed % 2 == 1
    setting = Setting(*sizes)
    life = Life(setting, setting.flash())
    for packet_id in range(1, 1200):
        life.forget_old_states()
        n = slot_bytes if source.random() < 0.4 else source.randrange(slot_bytes)
        life.do("put", packet_id, 2, source.randbytes(n), True)
        if life.state.last_id != packet_id:
            life.do("remove", source.choice(life.state.ids))
        if life.state.ids:
            life.do("pubrec", source.choice(life.state.ids))
        life.do("commit")
    life.do("check")
    assert life.refused > 10


@pytest.mark.parametrize("size", [*range(227, 239), 1000])
def test_largest_packet_behind_the_note_of_what_is_done_has_room(size):
    journal = opened(8, slot_bytes=size).do("put 1; remove 1; tidy")
    assert journal.put(2, packet=bytes(size))
    assert found(journal, slot_bytes=size).ids == [2]


@pytest.mark.parametrize(
    ("qos", "together", "programs", "erases"),
    [(1, 1, 1.0, 0.034), (1, 4, 0.5, 0.032), (2, 1, 2.0, 0.063), (2, 4, 0.75, 0.036)],
)
def test_message_costs_no_more_than_its_budget_and_wears_alike(qos, together, programs, erases):
    work = journal_work(qos, together)
    assert work.programs <= programs
    assert work.erases <= erases
    assert work.wear_difference <= 2


@pytest.mark.parametrize("qos", [1, 2])
def test_computed_erases_are_those_counted(qos):
    computed = erases_per_message(len(PACKET), qos)
    assert computed == pytest.approx(journal_work(qos).erases, rel=0.07)


def test_page_says_what_a_message_alone_erases_and_how_long_64_kb_last():
    page = (ROOT / "docs/guides/qos.md").read_text()
    assert f"{journal_work(1).erases:.3f} erases" in page
    years = life_years(65536, erases_per_message(len(PACKET)))
    assert f"is {years:.0f} years with one message in 10 s" in page
