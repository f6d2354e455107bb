"""What the journal promises besides surviving cuts: sizes, errors, economy."""

import binascii
import random
from unittest.mock import Mock

import pytest

from host_tests.journal.steps import fail, fails, filled, found, journal_error, opened, turn
from host_tests.powercut.life import Life, Setting
from host_tests.powercut.scenarios import walk
from host_tests.standin.nor import TORN_BITS, Flash, cut
from umqtt31 import MQTTError
from umqtt31 import journal as journal_module
from umqtt31.errors import JOURNAL

SMALL = Setting()


def test_journal_on_blank_flash_opens_empty_and_writes_nothing():
    journal = opened(16)
    assert found(journal) == ((), (), 0, False)
    assert journal.flash.operations == 0


def test_journal_recovers_messages_in_the_order_of_their_acceptance():
    journal = opened(16)
    for packet_id in (9, 7, 8):
        assert journal.put(packet_id, 2, b"%d" % packet_id, is_online=packet_id == 7)
    journal.pubrec(7)
    journal.commit()
    # When 7 could go out, 9 could, too.
    assert str(found(journal)) == "<9q2:39s 7q2:37rs 8q2:38; held []; last id 8>"


def test_journal_goes_on_behind_what_is_there_and_erases_nothing_for_a_reset():
    flash = Flash(16)
    for packet_id in range(1, 7):
        opened(flash).put(packet_id)
    assert flash.erases == 0
    assert found(flash).ids == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("length", [0, 1, 200, 240, 255, 256, 300, 1000])
def test_client_id_of_any_length_when_opened_again_then_all_is_there(length):
    """Also when the ring has turned, and only titles say what is held."""
    client_id = b"i" * length
    journal = opened(5, client_id).do("put 1; hold 7")
    turn(journal, 500, first=100)
    journal.sync()
    assert journal.flash.erases > 5
    after = found(journal, client_id=client_id)
    assert (after.ids, after.held) == ([1], (7,))
    with journal_error("is of client"):
        opened(journal.flash, client_id + b"i")


# Is it a group commit, calls, how many operations of the flash they take, what a reset finds then.
OPERATIONS = (
    (False, "online; commit; sync", 0, "<-; held []; last id 0>"),
    (False, "put 1; online; commit", 2, "<1q1:7061636bs; held []; last id 1>"),
    (False, "put 1; online; commit; online; commit", 2, "<1q1:7061636bs; held []; last id 1>"),
    (False, "put 1; online; put 2", 2, "<1q1:7061636bs 2q1:7061636b; held []; last id 2>"),
    (False, "put 4711; remove 4711; commit", 1, "<4711q1:7061636b; held []; last id 4711>"),
    (False, "put 4711; remove 4711; sync", 2, "<-; held []; last id 4711>"),
    (False, "put 4711; remove 4711; sync; sync", 2, "<-; held []; last id 4711>"),
    (True, "put 1; put 2; put 3", 0, "<-; held []; last id 0>"),
    (True, "put 1; put 2; commit", 1, "<1q1:7061636b 2q1:7061636b; held []; last id 2>"),
    (False, "put 1; online; hold 3; renew 1; commit", 3,
     "<1q1:7061636b; held []; last id 1, clean>"),
    (False, "put 1; online; hold 3; renew 1; commit; renew 1; commit", 3,
     "<1q1:7061636b; held []; last id 1, clean>"),
)  # fmt: skip


@pytest.mark.parametrize(("is_deferred", "calls", "operations", "state"), OPERATIONS)
def test_calls_take_few_operations_of_the_flash(is_deferred, calls, operations, state):
    """What is done needs none; what is said twice is recorded once."""
    journal = opened(16, group_commit=is_deferred).do(calls)
    assert journal.flash.operations == operations
    assert str(found(journal)) == state


def test_pubrec_when_its_note_fills_the_group_then_is_that_message_s():
    """However full the group is, and though the messages before it are done."""
    for length in range(222, 236):
        journal = opened(5, group_commit=True).do("put 1; put 2 2; put 3 2; put 4 2; commit")
        journal.put(5, packet=b"x" * 250)
        journal.put(6, packet=b"x" * length)
        journal.do("remove 1; pubrec 2")
        while journal.flash.erases < 10:  # what still counts is copied
            turn(journal, 1, first=7, packet=b"x" * 200)
            journal.commit()
        journal.sync()
        messages = found(journal).messages[:3]
        assert [m[::3] for m in messages] == [(2, True), (3, False), (4, False)]


def test_full_journal_refuses_and_changes_nothing_and_the_rest_has_room():
    journal = opened(4, slots=90)
    count = filled(journal, qos=2)
    assert 0 < count < 90
    for k in range(500):
        journal.do(f"pubrec {k % count + 1}; hold {k + 1}; commit; release {k + 1}; commit")
        assert not journal.put(999)
    after = found(journal, slots=90)
    assert (after.ids, after.held) == ([*range(1, count + 1)], ())
    journal.do("remove 1; put 1000")


# --- other journals ----------------------------------------------------------------------


def test_journal_of_another_format_version_is_refused_unless_told_to_erase(monkeypatch):
    flash = Flash(16)
    seal = journal_module._seal

    def seal_as_9(buf, view, end):
        buf[end - len(view) + 1] = 9
        seal(buf, view, end)

    with monkeypatch.context() as patch:
        patch.setattr(journal_module, "_seal", seal_as_9)
        with pytest.raises(MQTTError):  # it reads back what it does not understand
            opened(flash).put(1)
            opened(flash).put(1)
    with journal_error("format version 9"):
        opened(flash)
    assert found(flash, erase_foreign=True).messages == ()


VERSION_1 = (
    "4a01400000010000000000810000000001000d00320b0003742f31000132312e35"
    + "ff" * 11
    + "00014000100010006e6f64652d31371079bf5e5e"
)
VERSION_2 = (
    "4a0280000001000000000003810000000001000d00320b0003742f31000132312e35"
    + "ff" * 39
    + "00014000100010006e6f64652d3137"
    + "00" * 34
    + "33000d4939bc"
)


@pytest.mark.parametrize(("version", "image"), [(1, VERSION_1), (2, VERSION_2)])
def test_journal_of_an_older_version_is_refused_untouched_with_what_to_do(version, image):
    image = bytes.fromhex(image).ljust(65536, b"\xff")
    flash = Flash(16, image=image)
    with journal_error(f"version {version}: send it with the release that wrote"):
        opened(flash)
    assert bytes(flash.data) == image
    assert found(flash, erase_foreign=True).messages == ()


def turned(erases):
    """A flash of 16 blocks on which a journal erased so many; one message waits."""
    journal = opened(16)
    k = 1
    while journal.flash.erases < erases:
        turn(journal, 1, first=k, packet=bytes(200))
        k += 1
    journal.put(k)
    return bytes(journal.flash.data)


@pytest.mark.parametrize("erases", [1, 16, 17, 40, 55])
def test_journal_whose_area_is_larger_or_smaller_now_is_refused(erases):
    """From its second turn on it was taken for noise, and overwritten with its messages."""
    image = turned(erases) + b"\xff" * (48 * 4096)
    for blocks in (4, 5, 6, 10, 15, 17, 24, 32, 64):
        part = image[: blocks * 4096]
        flash = Flash(blocks, image=part)
        with journal_error("another layout"):
            opened(flash)
        assert flash.data == part
        assert found(flash, erase_foreign=True).messages == ()


@pytest.mark.parametrize("blocks", [-3, -1, 1, 2, 5])
@pytest.mark.parametrize("erases", [14, 55])
def test_journal_whose_area_begins_elsewhere_now_is_refused(erases, blocks):
    image, blank = turned(erases), b"\xff" * (abs(blocks) * 4096)
    moved = image[len(blank) :] + blank if blocks > 0 else (blank + image)[: len(image)]
    flash = Flash(16, image=moved)
    with journal_error("journal began at another place"):
        opened(flash)
    assert flash.data == moved


@pytest.mark.parametrize(("before", "now"), [(3, 5), (4, 5), (5, 3), (5, 4)])
def test_journal_of_another_level_when_it_holds_messages_is_refused(before, now):
    journal = opened(8, level=before)
    assert found(journal, level=now).messages == ()
    journal.put(1)
    with journal_error(f"messages of level {before}, not {now}"):
        opened(journal.flash, level=now)
    journal.do("remove 1; hold 7; sync")
    journal = opened(journal.flash, level=now).do("put 2")
    after = found(journal, level=now)
    assert (after.ids, after.held) == ([2], (7,))
    with journal_error(f"messages of level {now}, not {before}"):
        opened(journal.flash, level=before)


def test_journal_of_levels_3_and_4_is_the_same():
    assert found(opened(8, level=3).do("put 1"), level=4).ids == [1]


def test_erasing_a_foreign_journal_can_be_cut_and_done_again():
    other = opened(16, b"other")
    turn(other, 200)
    for operation in (0, 1, 5, 15):
        flash = Flash(16, image=other.flash.data)

        def tear(at, before, after, flash=flash, operation=operation):
            if flash.operations == operation:
                torn = cut(before, after, TORN_BITS, operation)
                flash.data[at : at + len(torn)] = torn
                raise KeyboardInterrupt

        flash.watch = tear
        with pytest.raises(KeyboardInterrupt):
            opened(flash, erase_foreign=True)
        assert found(Flash(16, image=flash.data), erase_foreign=True).messages == ()


# --- what cannot be read -----------------------------------------------------------------


def test_region_of_noise_is_taken_over_and_counted():
    flash = Flash(16, image=random.Random(3).randbytes(16 * 4096))
    journal = opened(flash)
    assert journal.journal.corrupt_pages == 256
    again = opened(journal.do("put 1").flash)
    assert (again.state().ids, again.journal.corrupt_pages) == ([1], 0)


def test_corrupt_page_costs_what_was_in_it_and_is_counted():
    journal = opened(16, cell_bytes=256)
    filled(journal, 6)
    journal.flash.spoil(2 * 256 + 40)
    again = opened(journal.flash, cell_bytes=256)
    assert again.state().ids == [1, None, 3, 4, 5, 6]
    assert again.journal.corrupt_pages == 1


def test_any_single_wrong_byte_never_stops_recovery():
    """Only a title that is wrong as a whole would be refused, and its CRC then is right."""
    flash = SMALL.flash()
    life = Life(SMALL, flash)
    for k in range(1, 6):
        life.do("put", k, 2, bytes([k]) * 20, True)
        life.do("hold", k)
        life.do("commit")
        life.do("release", k)
    image = bytes(flash.data)
    for at in range(0, len(image), 3):
        broken = bytearray(image)
        broken[at] ^= 1 + at % 255
        assert set(Life(SMALL, SMALL.flash(broken)).state.ids) <= set(life.state.ids)


@pytest.mark.parametrize("seed", range(40))
def test_shuffled_and_damaged_blocks_end_in_a_journal_or_a_clear_error(seed):
    source = random.Random(seed)
    flash = SMALL.flash()
    life = Life(SMALL, flash)
    for call in walk(seed, SMALL, 60):
        life.do(*call)
    size = SMALL.block_bytes
    blocks = [flash.data[i : i + size] for i in range(0, len(flash.data), size)]
    if source.random() < 0.5:
        source.shuffle(blocks)
    image = bytearray(b"".join(blocks))
    for _ in range(source.randrange(40)):
        image[source.randrange(len(image))] = source.randrange(256)
    try:
        state = Life(SMALL, SMALL.flash(image)).state
    except MQTTError as error:
        assert error.code == JOURNAL
    except ValueError as error:  # it is told when its turn comes
        assert str(error) == "a message is lost"
    else:
        assert len(state.messages) <= SMALL.slots


# --- sizes -------------------------------------------------------------------------------


def test_fewer_slots_than_once_were_used_is_fine():
    journal = opened(16)
    turn(journal, 20, kept=3)
    assert found(journal.do("sync"), slots=3, held_slots=1).ids == [18, 19, 20]


@pytest.mark.parametrize(("before", "now"), [(200, 100), (1000, 20)])
def test_smaller_packets_than_stored_are_refused_until_those_are_gone(before, now):
    journal = opened(16, slot_bytes=before)
    journal.put(1, packet=b"x" * before)
    with journal_error(f"raise buffer_size to {before}"):
        opened(journal.flash, slot_bytes=now)
    opened(journal.do("remove 1; sync").flash, slot_bytes=now)


SIZES = (
    (3, {}, "^journal needs 4 to 255 blocks, not 3$"),
    (16, {"slot_bytes": 2100}, "^packets of 2100 bytes need larger erase_bytes$"),
    (16, {"program_bytes": 100}, "must divide each other"),
    (16, {"program_bytes": 0}, "must divide each other"),
    (16, {"erase_bytes": 0}, "must divide each other"),
    (16, {"cell_bytes": 0}, "must divide each other"),
    (16, {"cell_bytes": None}, "must divide each other"),
    (16, {"program_bytes": 16}, "32 or more"),
    (16, {"erase_bytes": 2048}, "the device's 4096"),
)


@pytest.mark.parametrize(("blocks", "sizes", "text"), SIZES)
def test_sizes_that_cannot_work_are_refused_with_a_reason(blocks, sizes, text):
    with pytest.raises(ValueError, match=text):
        opened(blocks, **sizes)


def test_erase_unit_of_several_device_blocks_makes_room_for_large_packets():
    sizes = {"slot_bytes": 3000, "erase_bytes": 8192}
    journal = opened(32, **sizes)
    turn(journal, 300, packet=bytes(range(250)) * 12)
    journal.sync()
    assert journal.flash.erases > 32
    assert found(journal, **sizes).messages == ()


def test_recovery_of_a_full_journal_reads_each_byte_four_times_at_most():
    journal = opened(16)
    for k in range(700):
        if k >= 20:
            journal.remove(k - 19)
        journal.put(k + 1, packet=b"x" * (60 + k % 40))
    read_blocks = journal.flash.readblocks
    counts = []

    def counted(block, buf, offset=0):
        counts.append(len(buf))
        read_blocks(block, buf, offset)

    journal.flash.readblocks = counted
    opened(journal.flash)
    assert sum(counts) <= 4 * 65536


# --- devices that fail, and Ctrl-C -------------------------------------------------------


@pytest.mark.parametrize("fails", [fails, lambda *_: 5, lambda *_: -5])
@pytest.mark.parametrize("operation", ["writeblocks", "readblocks"])
def test_device_error_is_an_mqtt_error_and_loses_nothing(operation, fails):
    journal = opened(16).do("put 1")
    fail(journal, "put 2", **{operation: fails})
    assert found(journal.do("put 3")).ids == [1, 3]


def test_erase_that_answers_a_number_has_failed():
    journal = opened(Flash(16, image=bytes(65536)))
    fail(journal, "put 1", erase=lambda: 5)
    assert journal.flash.operations == 0
    journal.do("put 1")


def test_packet_that_cannot_be_read_now_is_an_mqtt_error_and_not_lost():
    journal = opened(16)
    assert journal.put(1, packet=b"first", in_ram=0)
    for readblocks in (fails, lambda *_: 5):
        fail(journal, "fetch", readblocks=readblocks)
    assert journal.fetch().packet == b"first"


def test_device_that_answers_a_number_cannot_be_read(monkeypatch):
    flash = Flash(16)
    monkeypatch.setattr(flash, "readblocks", lambda *_: 5)
    with pytest.raises(OSError):
        opened(flash)


def test_interrupted_put_is_not_accepted_and_the_page_not_used_again(monkeypatch):
    journal = opened(16).do("put 1")
    write = journal.flash.writeblocks

    def tear(block, buf, offset):
        write(block, buf, offset)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(journal.flash, "writeblocks", tear)
        journal.put(2)
    after = found(journal.do("hold 7; commit"))
    assert (after.ids, after.held) == ([1], (7,))


@pytest.mark.parametrize("place", ["_copy", "_make_room", "_program", "_add"])
def test_put_when_interrupted_then_its_room_is_free_again(monkeypatch, place):
    journal = opened(16).do("put 1")
    for _ in range(3):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(journal.journal, place, Mock(side_effect=KeyboardInterrupt))
            journal.put(2)
    ids = found(journal.do("put 3; remove 1; remove 3; put 4")).ids
    assert ids[-1] == 4 and set(ids) <= {2, 4}


def test_journal_when_large_numbers_cannot_be_had_then_writes_the_same(monkeypatch):
    """Then it is written the same, and read where they can: groups in all places of their pages.

    32-bit boards keep numbers of 30 bits without allocating, and the heap may be locked.
    """
    large = []  # CRCs that could not be had

    def crc_without_big_numbers(data):
        crc = binascii.crc32(data)
        if crc >= 1 << 30:
            large.append(crc)
            raise MemoryError
        return crc

    journals = [opened(8), opened(8)]
    for journal in journals:
        for number in range(60):
            packet = bytes((number * 37 + i) & 255 for i in range(40 + number))
            assert journal.put(number + 1, packet=packet)
            if number >= 4:
                journal.remove(number - 3)
        journal.sync()
        monkeypatch.setattr(journal_module, "crc32", crc_without_big_numbers)
    assert len(large) > 50  # three of four CRCs are large
    assert journals[0].flash.data == journals[1].flash.data
    monkeypatch.undo()
    after = opened(journals[1].flash)
    assert (after.state().ids, after.journal.corrupt_pages) == ([57, 58, 59, 60], 0)


# --- numbers that take another byte; two journals on one flash ----------------------------


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
