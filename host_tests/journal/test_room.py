"""How much a journal takes, what clearing gives back, what its refusals say."""

import random

import pytest

from host_tests.journal.steps import opened, put, recovered
from host_tests.powercut.life import Life, Setting
from host_tests.standin.nor import Flash
from umqtt31 import MQTTError
from umqtt31.errors import JOURNAL


def fill(journal):
    """-> how many messages it took."""
    count = 0
    while put(journal, count, count + 1):
        count += 1
    return count


@pytest.mark.parametrize(
    ("blocks", "sets", "count"),
    [(4, 1, 53), (8, 4, 269), (8, 36, 264), (5, 4, 107), (16, 36, 696)],
)
def test_journal_takes_as_many_cells_as_its_format_says(blocks, sets, count):
    """All blocks but three; of each, 54 of its 64 cells; without those for lists of held ids."""
    assert fill(opened(Flash(blocks, 4096, 256), slots=2000, held_slots=sets)) == count


def test_remove_when_full_then_there_is_room_for_just_as_many():
    journal = opened(Flash(8, 4096, 256), slots=2000)
    count = fill(journal)
    for slot in range(3):
        journal.remove(slot)
    assert [put(journal, slot, 1000 + slot) for slot in range(3)] == [True] * 3
    assert not put(journal, count, 2000)


def test_full_journal_when_opened_again_then_full_as_before():
    flash = Flash(8, 4096, 256)
    count = fill(opened(flash, slots=2000))
    again = opened(flash, slots=2000)
    assert not put(again, count, 2000)
    again.journal.note(0x40, 1)
    assert put(again, 0, 2000)
    assert not put(again, count, 2001)


def test_held_ids_when_opened_again_then_take_no_room_from_messages():
    flash = Flash(8, 4096, 256)
    journal = opened(flash)
    for packet_id in (1, 2, 3, 4):
        journal.hold_id(packet_id)
    journal.commit()
    assert fill(opened(flash, slots=2000)) == 269


def test_commit_when_only_removed_then_writes_nothing_and_sync_does():
    flash = Flash(8, 4096, 256)
    journal = opened(flash)
    put(journal, 0, 1)
    journal.remove(0)
    operations = flash.operations
    journal.commit()
    assert flash.operations == operations
    journal.sync()
    assert flash.operations > operations
    operations = flash.operations
    journal.sync()
    assert flash.operations == operations


REFUSALS = [
    (
        {"client_id": b"other"},
        "journal is of client b'node-17'; erase_foreign=True would erase it",
    ),
    ({"program_bytes": 512}, "journal has another layout; erase_foreign=True would erase it"),
    ({"slot_bytes": 8}, "journal holds more than fits: raise buffer_size to 100"),
    ({"slots": 1}, "journal holds more than fits: raise max_mqueue_len"),
    ({"held_slots": 0}, "journal holds more than fits: raise max_awaiting_rel"),
]


@pytest.mark.parametrize(("change", "text"), REFUSALS)
def test_journal_when_it_does_not_fit_then_says_what_to_do_and_is_unchanged(change, text):
    flash = Flash(8, 4096, 256)
    journal = opened(flash)
    put(journal, 0, 1, bytes(100))
    put(journal, 1, 2, b"short")
    journal.hold_id(7)
    journal.commit()
    image = bytes(flash.data)
    with pytest.raises(MQTTError) as caught:
        opened(flash, **{"slots": 20, **change})
    assert (caught.value.code, str(caught.value)) == (JOURNAL, text)
    assert bytes(flash.data) == image


def test_journal_when_device_is_too_small_then_says_how_many_blocks():
    with pytest.raises(ValueError, match="^journal needs 4 to 255 blocks, not 3$"):
        opened(Flash(3, 4096, 256))
    opened(Flash(4, 4096, 256))


def test_journal_when_packets_fill_blocks_then_asks_for_larger_ones():
    with pytest.raises(ValueError, match="^packets of 3000 bytes need larger erase_bytes$"):
        opened(Flash(8, 4096, 256), slot_bytes=3000)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 511, 700])
def test_message_of_any_length_when_opened_again_then_is_there_whole(size):
    flash = Flash(8, 4096, 256)
    packet = bytes(i * 7 & 255 for i in range(size))
    journal = opened(flash, slot_bytes=700)
    assert put(journal, 3, 9, packet, 2, True)
    assert put(journal, 4, 10, b"next")
    found = recovered(opened(flash, slot_bytes=700))
    assert [entry[5] for entry in found.messages] == [packet, b"next"]


@pytest.mark.parametrize("seed", range(12))
def test_random_use_at_the_limit_of_room_never_gets_stuck(seed):
    """Reclaiming has room by the argument in docs/reference/journal-format.md; this tries it."""
    source = random.Random(seed)
    page_bytes = source.choice((64, 128, 256))
    cell_bytes = source.choice((32, 64))
    pages = source.choice((8, 16))
    slot_bytes = source.randrange(20, max(21, page_bytes * pages // 4 - 40))
    setting = Setting(
        source.choice((5, 6, 9)),
        page_bytes * pages,
        page_bytes,
        cell_bytes,
        60,
        slot_bytes,
        2,
        seed % 2 == 1,
    )
    life = Life(setting, setting.flash())
    ids = []
    for packet_id in range(1, 1200):
        if life.model.states:
            del life.model.states[:-1]
            life.model.required = 0
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
