"""The journal on real MicroPython: nothing allocates, and littlefs below it is cut."""

from pathlib import Path

import pytest

from tools.project import ROOT

DEVICE = Path(__file__).parent / "device"
HEAP_BYTES = 1024 * 1024


def run(micropython, script, *args, **options):
    """-> what the script printed."""
    path = [ROOT, ROOT / "lib"]
    done = micropython.run(DEVICE / script, args=args, micropypath=path, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("way", ["at once", "deferred"])
def test_every_call_and_reclaiming_run_with_the_heap_locked(micropython, way):
    assert run(micropython, "locked.py", way) == "True True (12, 0, 300, True) []\n"


def test_journal_in_a_file_on_littlefs_survives_cuts_at_its_operations(
    micropython, micropythons, capsys
):
    """All of them together cut each operation, those that cut the same one in other ways."""
    share = 7 * micropythons.index(micropython), min(3, len(micropythons))
    said = run(micropython, "cuts.py", "littlefs", *share, heap_bytes=HEAP_BYTES)
    with capsys.disabled():
        print(f"\nlittlefs, MicroPython {micropython.id}: {said.strip()}")
    assert said.splitlines()[-1].endswith("cuts 0 wrong")
    assert int(said.split()[0]) > 1000


def test_journal_in_a_file_on_fat_is_refused_with_the_reason_or_survives_cuts(micropython):
    said = run(micropython, "cuts.py", "fat", 0, 1, heap_bytes=4 * HEAP_BYTES).strip()
    if said.startswith("refused"):
        assert "FAT" in said
    else:
        assert int(said.split()[0]) > 80
        assert said.endswith("cuts 0 wrong")


def test_what_a_full_filesystem_refused_is_not_there_when_there_is_room_again(micropython):
    assert run(micropython, "full.py", heap_bytes=HEAP_BYTES) == "[2, 3] [1, 4]\n"


def test_messages_that_wait_take_no_ram_and_little_while_a_journal_is_opened(micropython, capsys):
    said = run(micropython, "memory.py", heap_bytes=HEAP_BYTES)
    kept, kept_with_300, more, more_with_300, count = map(int, said.split())
    with capsys.disabled():
        print(f"\njournal, MicroPython {micropython.id}: {kept} bytes kept")
    assert count == 300
    assert kept_with_300 <= kept
    assert more_with_300 - more <= 5 * 300
