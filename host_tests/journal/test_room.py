"""How much a journal takes, what clearing gives back, what its refusals say."""

import random

import pytest

from host_tests.journal.steps import filled, found, opened, put
from host_tests.powercut.life import Life, Setting
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
    count = filled(journal)
    for slot in range(3):
        journal.remove(slot)
    assert [put(journal, slot, 1000 + slot) for slot in range(3)] == [True] * 3
    assert not put(journal, count, 2000)


def test_put_when_full_and_enough_is_removed_then_accepts():
    journal = opened(8, slots=500)
    filled(journal)
    large = b"x" * 256
    for slot in range(4):
        journal.remove(slot)
        assert not put(journal, 600, 600, large)
    journal.remove(4)
    assert put(journal, 600, 600, large)


def test_full_journal_when_opened_again_then_full_as_before():
    journal = opened(8, slots=2000)
    count = filled(journal)
    again = opened(journal.flash, slots=2000)
    assert not put(again, count, 2000)
    again.journal.note(0x40, 1)
    assert put(again, 0, 2000)
    assert not put(again, count, 2001)


def test_held_ids_when_opened_again_then_take_no_room_from_messages():
    journal = opened(8)
    for packet_id in (1, 2, 3, 4):
        journal.hold_id(packet_id)
    journal.commit()
    assert filled(opened(journal.flash, slots=2000)) == 269


def test_held_ids_by_the_hundred_survive_and_cost_no_room():
    journal = opened(8, held_slots=36)
    for packet_id in range(1, 3001):
        journal.hold_id(packet_id)
        if packet_id % 20 == 0:
            journal.commit()
        if packet_id > 1000:
            journal.release_id(packet_id - 900)
    journal.sync()
    assert found(journal, held_slots=40).held == [*range(1, 101), *range(2101, 3001)]
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
]


@pytest.mark.parametrize(("change", "text"), REFUSALS)
def test_journal_when_it_does_not_fit_then_says_what_to_do_and_is_unchanged(change, text):
    """Unless it is told to erase what is not the client's own."""
    journal = opened(8)
    put(journal, 0, 1, bytes(100))
    put(journal, 1, 2, b"short")
    journal.hold_id(7)
    journal.commit()
    image = bytes(journal.flash.data)
    is_foreign = text.endswith(FOREIGN)
    for is_erasing in {False, not is_foreign}:
        with pytest.raises(MQTTError) as caught:
            opened(journal.flash, **{"slots": 20, **change}, erase_foreign=is_erasing)
        assert (caught.value.code, str(caught.value)) == (JOURNAL, f"journal {text}")
        assert bytes(journal.flash.data) == image
    if is_foreign:
        assert found(journal, **change, erase_foreign=True).messages == []
        assert found(journal, **change).messages == []


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 511, 700])
def test_message_of_any_length_when_opened_again_then_is_there_whole(size):
    packet = bytes(i * 7 & 255 for i in range(size))
    journal = opened(8, slot_bytes=700)
    assert put(journal, 3, 9, packet, 2, True)
    assert put(journal, 4, 10, b"next")
    assert [m[5] for m in found(journal, slot_bytes=700).messages] == [packet, b"next"]


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
    ids = []
    for packet_id in range(1, 1200):
        life.model.forget_old_states()
        n = slot_bytes if source.random() < 0.4 else source.randrange(slot_bytes)
        life.do(("put", packet_id, 2, source.randbytes(n), True))
        if life.model.state.last_id == packet_id:
            ids.append(packet_id)
        else:
            life.do(("remove", ids.pop(source.randrange(len(ids)))))
        if ids:
            life.do(("pubrec", source.choice(ids)))
        life.do(("commit",))
    life.do(("check",))
    assert life.refused > 10


@pytest.mark.parametrize("size", [*range(227, 239), 1000])
def test_largest_packet_behind_the_note_of_what_is_done_has_room(size):
    journal = opened(8, slot_bytes=size)
    put(journal, 0, 1)
    journal.remove(0)
    journal.tidy()
    assert put(journal, 1, 2, bytes(size))
    assert found(journal, slot_bytes=size).ids == [2]
